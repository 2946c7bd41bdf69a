"""Letters of every script, and fonts under the names that programs give them.

matplotlib draws a box for what the chosen families lack, and the choice is everybody's: seaborn's, a
style's, the program's. Pillow has one font and no other. So a font that has the character is added where
each of them looks for it, and fontconfig, which knows all that are installed, says which. Text that
the chosen font has is drawn as without this. Nothing here imports either library.
"""
from .pristine import __builtins__

import os
import re
import subprocess
from bisect import bisect_right
from functools import lru_cache, wraps
from unicodedata import category

from .imports import when_imported

PATIENCE = 10  # seconds that fontconfig may take
PLAIN = "sans-serif"
DEFAULT = "DejaVu Sans"  # matplotlib brings it along
LATIN = "\u024f"  # up to here every font has what people write
# Fonts that others have, and what is like them here; one that is installed is taken itself.
FAMILIES = {
    "Liberation Sans": ("Arial", "Helvetica", "Helvetica Neue"),
    "Liberation Serif": ("Times New Roman", "Times"),
    "Liberation Mono": ("Courier New", "Courier"),
    "Carlito": ("Calibri",),
    "Caladea": ("Cambria",),
    DEFAULT: ("Verdana", "Tahoma", "Segoe UI", "Trebuchet MS", "Open Sans", "Roboto", "Lato", "Ubuntu", "FreeSans",
              "Comic Sans MS", "Impact"),
    "DejaVu Sans Mono": ("Consolas", "Menlo", "Monaco", "FreeMono"),
    "DejaVu Serif": ("Georgia", "FreeSerif"),
    "Noto Sans CJK JP": ("SimHei", "SimSun", "Microsoft YaHei", "PingFang SC", "PingFang HK", "Heiti TC", "STHeiti",
                         "KaiTi", "FangSong", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Noto Sans CJK SC",
                         "Noto Sans CJK TC", "Noto Sans CJK KR", "Noto Sans SC", "Noto Sans JP", "Noto Sans KR",
                         "Source Han Sans SC", "MS Gothic", "Meiryo", "Yu Gothic", "Hiragino Sans",
                         "Hiragino Maru Gothic Pro", "IPAGothic", "IPAexGothic", "TakaoGothic", "Malgun Gothic",
                         "NanumGothic", "AppleGothic", "Arial Unicode MS"),
}
# What their files are called, where that is not the family's name.
FILES = {"times": "Times New Roman", "cour": "Courier New", "consola": "Consolas", "segoeui": "Segoe UI",
         "trebuc": "Trebuchet MS", "comic": "Comic Sans MS", "msyh": "Microsoft YaHei", "malgun": "Malgun Gothic",
         "seguiemj": "Symbola", "applecoloremoji": "Symbola", "notocoloremoji": "Symbola",
         "notosanscjk": "Noto Sans CJK JP", "liberationsans": "Liberation Sans",
         "liberationserif": "Liberation Serif", "liberationmono": "Liberation Mono"}
FILES |= {name.replace(" ", "").lower(): name for names in FAMILIES.values() for name in names}
FILE = re.compile("(%s)(.*)" % "|".join(sorted(FILES, key=len, reverse=True)))
BOLD, ITALIC = re.compile("bold|black|heavy|^(bd|b|bi|z)$"), re.compile("italic|oblique|^(i|bi|z)$")


def install():
    when_imported("matplotlib.font_manager", mend_list)
    when_imported("matplotlib.text", mend_matplotlib)
    when_imported("PIL.ImageFont", mend_pillow)


# ---- what fonts there are ----

def ask(*command):
    """What one of fontconfig's programs answers; nothing where there is none."""
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=PATIENCE, text=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


@lru_cache(256)
def find(pattern):
    """The path of the font that is nearest to a pattern of fontconfig's."""
    return ask("fc-match", "-f", "%{file}", pattern + ":scalable=true:color=false")


class Characters:
    """Those of a font, as it is long ranges for most."""

    def __init__(self, path):
        ranges = ask("fc-query", "-i", "0", "-f", "%{charset}", path).split()
        ends = [[int(end, 16) for end in part.split("-")] for part in ranges]
        self.first = [end[0] for end in ends]
        self.last = [end[-1] for end in ends]

    def lack(self, character):
        """Of a font that nothing is known of it is believed to lack nothing."""
        at = bisect_right(self.first, ord(character)) - 1
        return bool(self.first) and (at < 0 or self.last[at] < ord(character))


characters_of = lru_cache(256)(Characters)
_others = []  # paths, in the order in which they came to be needed
_nowhere = set()  # characters that no font has


def other_font(character):
    """The path of one that has it, or None."""
    for path in _others:
        if not characters_of(path).lack(character):
            return path
    if character in _nowhere:
        return None
    path = find(f"{PLAIN}:charset={ord(character):x}")
    if not path or characters_of(path).lack(character):
        _nowhere.add(character)
        return None
    _others.append(path)
    return path


def is_drawn(character):
    return not character.isspace() and category(character) != "Cc"


def file_like(name):
    """The path of a font like the one in a file of that name, or None for a name that nobody knows."""
    stem = re.sub("[ _]", "", os.path.splitext(os.path.basename(name))[0].lower())
    known = FILE.fullmatch(stem)
    if known is None:
        return None
    style = known[2].lstrip("-")
    return find(FILES[known[1]] + ":bold" * bool(BOLD.search(style)) + ":italic" * bool(ITALIC.search(style))) or None


# ---- matplotlib ----

_added = []  # paths: what is looked through after the chosen families


def mend_list(module):
    """Families that programs name, so that naming them takes effect."""
    fonts = module.fontManager.ttflist
    installed = {font.name for font in fonts}
    for like, names in FAMILIES.items():
        entries = [font for font in fonts if font.name == (like if like in installed else DEFAULT)]
        for name in names:
            if name not in installed:
                fonts += [module.FontEntry(**{**vars(entry), "name": name}) for entry in entries]


def mend_matplotlib(module):
    from matplotlib.font_manager import FontManager, fontManager
    find_fonts, set_text = FontManager._find_fonts_by_props, module.Text.set_text

    @wraps(find_fonts)
    def _find_fonts_by_props(self, *args, **options):
        paths = find_fonts(self, *args, **options)
        if paths[0].endswith(".afm"):
            return paths
        return paths + [path for path in _added if path not in paths]

    @wraps(set_text)
    def set_text_of_any_script(self, s):
        text = str(s) if s is not None else ""
        if text and max(text) > LATIN:
            add_fonts(text, fontManager.findfont(DEFAULT))
        set_text(self, s)

    FontManager._find_fonts_by_props = _find_fonts_by_props
    module.Text.set_text = set_text_of_any_script


def add_fonts(text, default):
    """They are opened with every other font, which takes a millisecond for some: only what is needed."""
    own = characters_of(default)
    others = [other_font(c) for c in dict.fromkeys(text) if is_drawn(c) and own.lack(c)]
    _added.extend(path for path in dict.fromkeys([default, *others]) if path and path not in _added)


# ---- Pillow ----

def mend_pillow(module):
    _mend_opening(module)
    _mend_default(module)
    _mend_drawing(module.FreeTypeFont, module.Image)


def _mend_opening(module):
    truetype = module.truetype

    @wraps(truetype)
    def truetype_by_any_name(font=None, *args, **options):
        try:
            return truetype(font, *args, **options)
        except OSError:
            like = file_like(os.fspath(font)) if isinstance(font, (str, os.PathLike)) else None
            if like is None:
                raise
            return truetype(like, *args, **options)

    module.truetype = truetype_by_any_name


def _mend_default(module):
    """Pillow's own is one of 256 small pictures. Later versions have another, and in any size."""
    load_default, plain = module.load_default, module.ImageFont

    def load(size=None):
        return load_default() if size is None else module.truetype(find(PLAIN), size)

    def instead(name):
        method = getattr(plain, name)

        @wraps(method)
        def measure_or_draw(self, text, *args, **options):
            try:
                return method(self, text, *args, **options)
            except UnicodeEncodeError:
                return getattr(load(10), name)(text, *args, **options)

        return measure_or_draw

    if load_default.__code__.co_argcount == 0:
        module.load_default = wraps(load_default)(load)
        for name in ("getmask", "getbbox", "getlength"):
            setattr(plain, name, instead(name))


class Runs:
    """A line of text in pieces: each is drawn in a font that has all of it, from `at` pixels on."""

    def __init__(self, font, text, getlength, **options):
        self.font = font
        self.pieces = []
        self.length = 0
        for path, piece in split(font.path, text):
            drawn_in = font if path is None else font.font_variant(path, index=0)
            self.pieces.append((drawn_in, piece, round(self.length)))
            self.length += getlength(drawn_in, piece, **options)

    def shift(self, anchor, top, bottom):
        """From the baseline's left end to where the anchor is."""
        ascent, descent = self.font.getmetrics()
        across = {"l": 0, "m": -self.length / 2, "r": -self.length}
        down = {"a": ascent, "t": -top, "m": (ascent - descent) / 2, "s": 0, "b": -bottom, "d": -descent}
        anchor = anchor or "la"
        try:
            return round(across[anchor[0]]), round(down[anchor[1]])
        except (KeyError, IndexError):
            raise ValueError("bad anchor specified") from None


def split(path, text):
    """Pairs: None for the font itself, or another's path; and the text it is for. What has no shape of its
    own stays with what it follows."""
    own, runs = characters_of(path), []
    for character in text:
        if not runs:
            runs.append([None, ""])
        here = runs[-1][0]
        if is_drawn(character) and (category(character) not in ("Mn", "Cf") or not runs[-1][1]):
            here = other_font(character) if own.lack(character) else None
        if here != runs[-1][0] and runs[-1][1]:
            runs.append([here, ""])
        runs[-1][0] = here
        runs[-1][1] += character
    return runs


def is_lacking(font, text, direction):
    return (isinstance(text, str) and text and max(text) > LATIN and isinstance(font.path, str) and direction != "ttb" and
            any(is_drawn(c) and characters_of(font.path).lack(c) and other_font(c) for c in set(text)))


def _mend_drawing(font_type, image):
    getmask2, getbbox, getlength = font_type.getmask2, font_type.getbbox, font_type.getlength

    def runs_of(self, text, direction, features, language):
        return Runs(self, text, getlength, direction=direction, features=features, language=language)

    @wraps(getlength)
    def getlength_of_runs(self, text, mode="", direction=None, features=None, language=None):
        if not is_lacking(self, text, direction):
            return getlength(self, text, mode, direction, features, language)
        return runs_of(self, text, direction, features, language).length

    @wraps(getbbox)
    def getbbox_of_runs(self, text, mode="", direction=None, features=None, language=None, stroke_width=0,
                        anchor=None):
        if not is_lacking(self, text, direction):
            return getbbox(self, text, mode, direction, features, language, stroke_width, anchor)
        runs = runs_of(self, text, direction, features, language)
        boxes = [(at, getbbox(font, piece, mode, direction, features, language, stroke_width, "ls"))
                 for font, piece, at in runs.pieces]
        top, bottom = min(box[1] for _, box in boxes), max(box[3] for _, box in boxes)
        x, y = runs.shift(anchor, top, bottom)
        return (x + min(at + box[0] for at, box in boxes), y + top,
                x + max(at + box[2] for at, box in boxes), y + bottom)

    @wraps(getmask2)
    def getmask2_of_runs(self, text, mode="", *args, direction=None, features=None, language=None, anchor=None,
                         **options):
        if args or not is_lacking(self, text, direction):
            return getmask2(self, text, mode, *args, direction=direction, features=features, language=language,
                            anchor=anchor, **options)
        runs = runs_of(self, text, direction, features, language)
        drawn = []
        for font, piece, at in runs.pieces:
            mask, (left, top) = getmask2(font, piece, mode, direction=direction, features=features,
                                         language=language, anchor="ls", **options)
            if all(mask.size):
                drawn.append((image.Image()._new(mask), at + left, top))
        left, top = min(d[1] for d in drawn), min(d[2] for d in drawn)
        right, bottom = max(d[1] + d[0].width for d in drawn), max(d[2] + d[0].height for d in drawn)
        whole = image.new("RGBA" if mode == "RGBA" else "L", (right - left, bottom - top), 0)
        for part, at, y in drawn:
            whole.paste(part if mode == "RGBA" else 255, (at - left, y - top),
                        part.getchannel("A") if mode == "RGBA" else part)
        x, y = runs.shift(anchor, top, bottom)
        return whole.im, (left + x, top + y)

    font_type.getlength = getlength_of_runs
    font_type.getbbox = getbbox_of_runs
    font_type.getmask2 = getmask2_of_runs
