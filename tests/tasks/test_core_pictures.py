"""Pictures, and text in them in every script, without a setting."""
import numpy as np
import tasks
from PIL import Image
from tasks import cli, shown

# Of each, three characters that look different. Where several scripts share a font, each has to be there.
SCRIPTS = {"Latin": "Ağß", "Greek": "Ωψλ", "Cyrillic": "Жйя", "Arabic": "معش", "Hebrew": "שםא", "Devanagari": "कमह",
           "Chinese": "简体龙", "Japanese": "売あネ", "Korean": "한국어", "emoji": "😀🚀🧠"}
MISSING = "\U000fffff"  # of a private range, in no font


class Pictures(tasks.Case):
    def test_resized_to_800_and_watermarked(self):
        across, down = np.meshgrid(np.arange(1600), np.arange(1066))
        photo = np.stack([across % 256, down % 256, (across + down) % 64], axis=2).astype("uint8")
        Image.fromarray(photo // 2).save(self.path("photo.jpg"), quality=95)
        self.do("""
from PIL import Image, ImageDraw, ImageFont
img = Image.open('/mnt/data/photo.jpg')
w, h = img.size
img = img.resize((800, int(h * 800 / w)), Image.LANCZOS).convert('RGBA')
plain = img.copy()
layer = Image.new('RGBA', img.size, (255, 255, 255, 0))
draw = ImageDraw.Draw(layer)
try:
    font = ImageFont.truetype('arial.ttf', 48)
except OSError:
    font = ImageFont.load_default()
text = '© Example 2024'
left, top, right, bottom = draw.textbbox((0, 0), text, font=font)
draw.text((img.width - right - 20, img.height - bottom - 20), text, font=font, fill=(255, 255, 255, 160))
result = Image.alpha_composite(img, layer)
result.convert('RGB').save('/mnt/data/photo_800.png')
plain.convert('RGB').save('/mnt/data/plain.png')
print(result.size)
""", self.path("photo.jpg"))
        with Image.open(self.out("photo_800.png")) as image:
            self.assertEqual((image.format, image.size), ("PNG", (800, 533)))
        with Image.open(self.path("photo.jpg")) as image:
            expected = np.asarray(image.convert("RGB").resize((800, 533), Image.LANCZOS)).astype(int)
        self.assertLessEqual(abs(self.picture("plain.png") - expected).max(), 1)
        marked = (self.picture("photo_800.png") - expected).sum(axis=2)
        down, across = np.nonzero(marked > 60)
        # Lighter, in the lower right corner, as large as was said, and nowhere else.
        self.assertTrue(350 < across.min() and across.max() < 785 and 450 < down.min() and down.max() < 520,
                        (across.min(), across.max(), down.min(), down.max()))
        self.assertGreater(across.max() - across.min(), 250)
        self.assertGreater(down.max() - down.min(), 25)

    def test_japanese_labels_in_a_chart(self):
        drawn = {}
        for name, title in (("japanese", "売上高の推移"), ("other", "費用高の推移"), ("missing", MISSING * 6)):
            cell = cli.run("run", "--json", "--server", self.server.link, "-", input=f"""
import matplotlib.pyplot as plt
import seaborn as sns
sns.set_theme(style="whitegrid")
months = ["一月", "二月", "三月"]
plt.figure(figsize=(6, 4))
plt.bar(months, [120, 150, 90])
plt.title({title!r}, fontsize=20)
plt.xlabel("月")
plt.ylabel("百万円")
plt.show()
""").json
            self.assertEqual(cell["status"], "ok", cell)
            warnings = cli.text(cell, "stderr")
            self.assertEqual("missing from current font" in warnings, name == "missing", warnings)
            [picture] = shown(cell)
            drawn[name] = cut(picture[:len(picture) // 9].sum(axis=2) < 400)  # the title
        # Six characters of the same width, of which two differ, and none is a box.
        japanese, other, missing = drawn["japanese"], drawn["other"], drawn["missing"]
        self.assertFalse(same(japanese, missing))
        third = japanese.shape[1] // 3
        self.assertFalse(same(japanese[:, :third], other[:, :third]))
        self.assertTrue(same(cut(japanese[:, -2 * third + 4:]), cut(other[:, -2 * third + 4:])))

    def draw_all(self, code):
        """Pictures of every character, drawn by code, which puts them in a file of the name in `name`."""
        texts = {f"{script}{n}": c for script, text in SCRIPTS.items() for n, c in enumerate(text)}
        texts["missing"] = MISSING
        self.do(f"texts = {texts!r}\n{code}")
        return {name: cut(self.picture(name + ".png").sum(axis=2) < 400) for name in texts}

    def assertAllDiffer(self, drawn):
        for name, picture in drawn.items():
            self.assertGreater(picture.size, 30, f"{name} is not drawn")
        names = list(drawn)
        for n, name in enumerate(names):
            for other in names[:n]:
                self.assertFalse(same(drawn[name], drawn[other]), f"{name} looks like {other}")

    def test_every_script_in_matplotlib(self):
        self.assertAllDiffer(self.draw_all("""
import warnings
import matplotlib.pyplot as plt
warnings.simplefilter("ignore")  # of the one that is in no font
plt.rcParams["font.family"] = "Arial"
for name, text in texts.items():
    fig = plt.figure(figsize=(1, 1))
    fig.text(0.2, 0.3, text, fontsize=30)
    fig.savefig(name + ".png")
    plt.close(fig)
"""))

    def test_every_script_in_pillow(self):
        self.assertAllDiffer(self.draw_all("""
from PIL import Image, ImageDraw, ImageFont
font = ImageFont.truetype("DejaVuSans.ttf", 40)
for name, text in texts.items():
    image = Image.new("RGB", (100, 100), "white")
    ImageDraw.Draw(image).text((20, 20), text, font=font, fill="black")
    image.save(name + ".png")
"""))

    def test_no_warning_for_any_script(self):
        self.do(f"""
import matplotlib.pyplot as plt
plt.rcParams["font.sans-serif"] = ["SimHei"]
plt.title({" ".join(SCRIPTS.values())!r})
plt.savefig("a.png"); plt.savefig("a.pdf"); plt.savefig("a.svg")
plt.close()
""")

    def test_pillow_measures_what_it_draws(self):
        """Text of several fonts in one line, at every anchor."""
        self.do("""
from PIL import Image, ImageDraw, ImageFont
font = ImageFont.truetype("arial.ttf", 30)
text = "Ag 売上 नम 한 😀"
for across in "lmr":
    for down in "atmsbd":
        image = Image.new("L", (800, 300), 0)
        draw = ImageDraw.Draw(image)
        draw.text((400, 150), text, font=font, fill=255, anchor=across + down)
        box, said = image.getbbox(), draw.textbbox((400, 150), text, font=font, anchor=across + down)
        assert all(abs(a - b) <= 2 for a, b in zip(box, said)), (across, down, box, said)
        plain = draw.textbbox((400, 150), "Ag", font=font, anchor=across + down)
        if down in "asmd":  # lines of the font, which are the same whatever is drawn
            parts = image.crop((said[0], 0, said[0] + 40, 300)).getbbox()
            assert abs(parts[3] - plain[3]) <= 2, (across, down, parts, plain)
assert draw.textlength("Ag 売上", font=font) > draw.textlength("Ag ", font=font) + 50
ImageDraw.Draw(image).text((5, 5), "default 売上", fill=255)
assert ImageFont.load_default(size=40).getlength("wide") > 60
try:
    ImageFont.truetype("no-such-font-of-mine.ttf", 12)
    print("found")
except OSError:
    print("as it should be")
""")

    def test_an_animated_chart_as_gif(self):
        self.do("""
import numpy as np
import matplotlib.pyplot as plt
from matplotlib.animation import FuncAnimation, PillowWriter
fig, ax = plt.subplots(figsize=(4, 3))
x = np.linspace(0, 2 * np.pi, 100)
line, = ax.plot(x, np.sin(x), color="red", lw=3)
def update(frame):
    line.set_ydata(np.sin(x + frame / 5))
    return line,
FuncAnimation(fig, update, frames=12).save("wave.gif", writer=PillowWriter(fps=10))
plt.close()
""")
        frames = []
        with Image.open(self.out("wave.gif")) as image:
            self.assertEqual((image.n_frames, image.size), (12, (400, 300)))
            for n in range(12):
                image.seek(n)
                frames.append(np.asarray(image.convert("RGB")).astype(int))
        peaks = []
        for frame in frames[:6]:
            down, across = np.nonzero(tasks.coloured(frame, (255, 0, 0)))
            peaks.append(across[down <= down.min() + 1].mean())
        self.assertEqual(peaks, sorted(peaks, reverse=True), "the wave moves to the left")


def cut(ink):
    """Without the empty lines and columns around."""
    down, across = np.nonzero(ink)
    if not len(down):
        return np.zeros((0, 0), bool)
    return ink[down.min():down.max() + 1, across.min():across.max() + 1]


def same(a, b):
    return a.shape == b.shape and (a != b).mean() < 0.01
