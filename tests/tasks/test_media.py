"""QR codes and films."""
import subprocess

import numpy as np
import tasks
from PIL import Image
from pyzbar import pyzbar


def frames_of(path, width, height):
    data = subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
                          capture_output=True, check=True).stdout
    return np.frombuffer(data, "uint8").reshape(-1, height, width, 3).astype(int)


class Media(tasks.Case):
    def test_qr_codes(self):
        texts = ["https://example.org/a?b=1", "WIFI:S:home;T:WPA;P:s3cret;;", "Grüße aus Wien – 日本"]
        self.do(f"""
import qrcode
for n, text in enumerate({texts!r}):
    qrcode.make(text).save(f"code{{n}}.png")
qr = qrcode.QRCode(error_correction=qrcode.constants.ERROR_CORRECT_H, box_size=6, border=4)
qr.add_data({texts[0]!r})
qr.make(fit=True)
qr.make_image(fill_color="navy", back_color="white").save("coloured.png")
""")
        for name, text in [(f"code{n}.png", text) for n, text in enumerate(texts)] + [("coloured.png", texts[0])]:
            with Image.open(self.out(name)) as image:
                [code] = pyzbar.decode(image.convert("L"))
            self.assertEqual(code.data.decode(), text)
        self.assertTrue(tasks.coloured(self.picture("coloured.png"), (0, 0, 128)).any())

    def test_an_animated_chart_as_mp4(self):
        self.do("""
import matplotlib.pyplot as plt
import matplotlib.animation as animation
import numpy as np

rng = np.random.default_rng(0)
values = np.abs(rng.normal(size=(20, 4))).cumsum(axis=0)
fig, ax = plt.subplots(figsize=(6.4, 4.8), dpi=100)

def draw(frame):
    ax.clear()
    ax.bar(["A", "B", "C", "D"], values[frame], color="green")
    ax.set_ylim(0, values.max())
    ax.set_title(f"Day {frame + 1}")

ani = animation.FuncAnimation(fig, draw, frames=20, interval=100)
ani.save("race.mp4", writer=animation.FFMpegWriter(fps=10))
ani.save("race.gif", writer="pillow", fps=10)
np.save("values.npy", values)
plt.close(fig)
""")
        values = np.load(self.out("values.npy")).sum(axis=1)
        with Image.open(self.out("race.gif")) as image:
            self.assertEqual(image.n_frames, 20)
        films = frames_of(self.out("race.mp4"), 640, 480)
        self.assertEqual(len(films), 20)
        green = np.array([tasks.coloured(frame, (0, 128, 0)).sum() for frame in films])
        # The bars' area is what was to be shown.
        self.assertGreater(np.corrcoef(green, values)[0, 1], 0.999)

    def test_frames_by_imageio(self):
        self.do("""
import imageio.v2 as imageio
import numpy as np
frames = [np.full((48, 64, 3), (k * 20, 0, 255 - k * 20), dtype=np.uint8) for k in range(10)]
imageio.mimsave("fade.gif", frames, duration=0.1)
imageio.mimsave("fade.mp4", frames, fps=10, macro_block_size=None)
""")
        with Image.open(self.out("fade.gif")) as image:
            self.assertEqual(image.n_frames, 10)
        film = frames_of(self.out("fade.mp4"), 64, 48)
        self.assertEqual(len(film), 10)
        for k, frame in enumerate(film):
            self.assertLess(abs(frame.mean(axis=(0, 1)) - (k * 20, 0, 255 - k * 20)).max(), 12)
