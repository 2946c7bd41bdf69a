"""Pictures that are to be no larger than somebody asked for with the cell."""
from io import BytesIO

from owner import needs
from test_cells import Case, png

SHOW = "from IPython.display import Image as Shown, display\nfrom PIL import Image\nfrom io import BytesIO\n" \
       "import random\n" \
       "def made(form, mode, size, fill, **options):\n" \
       "    out = BytesIO()\n" \
       "    picture = Image.new(mode, size, fill) if fill is not None else Image.frombytes(mode, size, " \
       "random.Random(1).randbytes(size[0] * size[1] * len(mode)))\n" \
       "    picture.save(out, form, **options)\n" \
       "    return Shown(out.getvalue(), format=form.lower())\n"


@needs("PIL")
class Bounds(Case):
    def setUp(self):
        super().setUp()
        self.run_ok(SHOW)

    def show(self, code, pictures):
        cell = self.run_ok(code, pictures=pictures)
        self.assertEqual(cell.stderr, "")
        return cell.result

    def size(self, data):
        from PIL import Image
        picture = Image.open(BytesIO(data))
        picture.load()
        return picture.size

    def test_scaled_down(self):
        data = self.show("made('PNG', 'RGB', (3000, 600), 'red')", 1000)["image/png"]
        self.assertEqual(png(data), (1000, 200))
        data = self.show("made('JPEG', 'RGB', (300, 900), 'red')", 450)["image/jpeg"]
        self.assertEqual(self.size(data), (150, 450))

    def test_what_fits_is_not_touched(self):
        code = "made('PNG', 'RGB', (200, 100), 'blue')"
        self.assertEqual(self.show(code, 200)["image/png"], self.show(code, 0)["image/png"])
        code = "made('PNG', 'RGB', (2000, 100), 'blue')"
        self.assertEqual(png(self.show(code, 0)["image/png"]), (2000, 100))

    def test_modes(self):
        for mode, fill in (("1", 1), ("L", 3), ("P", 3), ("RGBA", (1, 2, 3, 4)), ("I", 70000), ("I;16", 7), ("LA", (1, 2))):
            data = self.show(f"made('PNG', {mode!r}, (300, 150), {fill!r})", 100)["image/png"]
            self.assertEqual(png(data), (100, 50), mode)
        data = self.show("made('JPEG', 'CMYK', (300, 150), (1, 2, 3, 4))", 100)["image/jpeg"]
        self.assertEqual(self.size(data), (100, 50))

    def test_too_many_bytes(self):
        data = self.show("made('PNG', 'RGB', (1500, 1500), None)", 1568)["image/png"]
        self.assertLessEqual(len(data), 1 << 20)
        self.assertGreater(png(data)[0], 300)

    def test_turned(self):
        code = "e = Image.Exif(); e[0x112] = 6\nmade('JPEG', 'RGB', (400, 200), 'red', exif=e)"
        self.assertEqual(self.size(self.show(code, 100)["image/jpeg"]), (50, 100))

    def test_what_is_no_picture(self):
        for data in ("b'\\x89PNG\\r\\n\\x1a\\n' + b'x' * 99", "b''", "b'\\xff\\xd8\\xff' + bytes(99)"):
            cell = self.run_ok(f"display({{'image/png': {data}, 'image/jpeg': {data}}}, raw=True)", pictures=64)
            self.assertEqual(len(cell.displays), 1)

    def test_more_pixels_than_a_picture_may_have(self):
        """A file of a few kilobytes that would take gigabytes: it comes as it is."""
        self.run_ok("import zlib, struct\n"
                    "def part(kind, body): return struct.pack('>I', len(body)) + kind + body + "
                    "struct.pack('>I', zlib.crc32(kind + body))\n"
                    "bomb = b'\\x89PNG\\r\\n\\x1a\\n' + part(b'IHDR', struct.pack('>IIBBBBB', 60000, 60000, 8, 2, 0, 0, 0)) + "
                    "part(b'IDAT', zlib.compress(bytes(1 << 20))) + part(b'IEND', b'')")
        cell = self.run_ok("display({'image/png': bomb}, raw=True)", pictures=64)
        self.assertEqual(len(cell.displays), 1)

    def test_the_next_cell_asks_anew(self):
        self.show("made('PNG', 'RGB', (300, 300), 'red')", 100)
        self.assertEqual(png(self.show("made('PNG', 'RGB', (300, 300), 'red')", 0)["image/png"]), (300, 300))

    @needs("matplotlib")
    def test_figure(self):
        cell = self.run_ok("import matplotlib.pyplot as plt\nplt.figure(figsize=(20, 10)); plt.plot([1, 2])", pictures=640)
        (kind, data), = [(d, d["image/png"]) for d in cell.displays if "image/png" in d]
        self.assertLessEqual(max(png(data)), 640)
