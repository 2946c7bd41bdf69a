"""Pictures within bounds, for who asked for that with the cell: a model looks at so many pixels and no more.

Done here and not by who asks: a picture that means harm is decoded where it came from.
"""
from .pristine import __builtins__

from io import BytesIO
from math import sqrt

BYTES_MAX = 1 << 20
TRIES = 6
SIDE_MIN = 64
FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG"}
PLAIN_MODES = {"PNG": {"L", "LA", "RGB", "RGBA"}, "JPEG": {"L", "RGB"}}


def fit(mime, data, side):
    """The same picture with at most `side` pixels on its longer side and at most BYTES_MAX bytes; as it is where it
    fits already, is of another kind, or cannot be read."""
    if mime not in FORMATS:
        return data
    try:
        from PIL import Image, ImageOps
        picture = Image.open(BytesIO(data), formats=(FORMATS[mime],))
        if max(picture.size) <= side and len(data) <= BYTES_MAX:
            return data
        # What says how to turn it is lost with the rest of what a camera noted.
        return _scaled(_plain(ImageOps.exif_transpose(picture), FORMATS[mime]), FORMATS[mime], side)
    except Exception:  # no Pillow, or it is not what it says
        return data


def _plain(picture, form):
    """With colours that can be mixed."""
    if picture.mode in PLAIN_MODES[form]:
        return picture
    clear = form == "PNG" and (picture.mode in ("PA", "La", "RGBa") or "transparency" in picture.info)
    return picture.convert("RGBA" if clear else "RGB")


def _scaled(picture, form, side):
    longest = max(picture.size)
    side = min(side, longest)
    for _ in range(TRIES):
        size = [max(1, round(pixels * side / longest)) for pixels in picture.size]
        output = BytesIO()
        (picture if side == longest else picture.resize(size)).save(output, form)
        data = output.getvalue()
        if len(data) <= BYTES_MAX or side <= SIDE_MIN:
            break
        side = max(SIDE_MIN, int(side * min(0.9, 0.95 * sqrt(BYTES_MAX / len(data)))))
    return data
