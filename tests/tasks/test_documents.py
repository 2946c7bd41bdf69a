"""Documents: PDF, Word, scans. The programs behind them (LibreOffice, pandoc, poppler, tesseract) run in the box."""
import difflib
import random
import shutil
import subprocess
import unittest
import zipfile

import docx
import numpy as np
import tasks
from docx.shared import Pt
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import ListFlowable, PageBreak, Paragraph, SimpleDocTemplate, Table
from test_core_pictures import MISSING, SCRIPTS, cut, same

WORDS = "market river engine report winter signal garden copper balance harbour window theory".split()


def sentence(rng):
    return " ".join(rng.sample(WORDS, 8)).capitalize() + "."


def text_of(pdf):
    return subprocess.run(["pdftotext", "-layout", pdf, "-"], capture_output=True, text=True, check=True).stdout


class Documents(tasks.Case):
    def test_pdf_to_markdown(self):
        rng = random.Random(21)
        styles = getSampleStyleSheet()
        story, expected = [], []
        for chapter in range(3):
            story.append(Paragraph(f"Chapter {chapter + 1}: {WORDS[chapter]}", styles["Heading1"]))
            expected.append(f"# Chapter {chapter + 1}: {WORDS[chapter]}")
            story.append(Paragraph("Background", styles["Heading2"]))
            expected.append("## Background")
            text = sentence(rng)
            story.append(Paragraph(text, styles["Normal"]))
            expected.append(text)
            points = [sentence(rng) for _ in range(3)]
            story.append(ListFlowable([Paragraph(p, styles["Normal"]) for p in points], bulletType="bullet"))
            expected += [f"- {p}" for p in points]
            story.append(PageBreak())
        story.append(Table([["city", "sales"], ["Graz", "1250"]]))
        SimpleDocTemplate(self.path("paper.pdf")).build(story)
        self.do("""
import fitz  # PyMuPDF
from collections import Counter

doc = fitz.open("/mnt/data/paper.pdf")
lines = []
for page in doc:
    for block in page.get_text("dict")["blocks"]:
        for line in block.get("lines", []):
            text = "".join(span["text"] for span in line["spans"]).strip()
            if text:
                lines.append((text, round(max(span["size"] for span in line["spans"]), 1), line["bbox"]))
body = Counter(size for _, size, _ in lines).most_common(1)[0][0]
larger = sorted({size for _, size, _ in lines if size > body}, reverse=True)
markdown, bullet = [], False
for text, size, box in lines:
    if text in "\\u2022\\u25cf":
        bullet = True
    elif size in larger:
        markdown.append("#" * (larger.index(size) + 1) + " " + text)
    else:
        markdown.append(("- " if bullet else "") + text)
        bullet = False
with open("/mnt/data/paper.md", "w") as f:
    f.write("\\n\\n".join(markdown))
print(len(doc), "pages")
""", self.path("paper.pdf"))
        with open(self.out("paper.md")) as file:
            lines = [line for line in file.read().split("\n") if line]
        self.assertEqual(lines[:len(expected)], expected)
        self.assertEqual(sorted(lines[len(expected):]), ["1250", "Graz", "city", "sales"])

    def test_a_dozen_word_documents_to_pdf_in_one_zip(self):
        rng = random.Random(22)
        texts, paths = {}, []
        for n in range(12):
            name = f"letter {n + 1:02}" if n % 2 else f"Bericht_{n + 1:02}"
            document = docx.Document()
            document.add_heading(f"Document {n + 1}", 0)
            texts[name] = [sentence(rng) for _ in range(4)]
            for text in texts[name]:
                document.add_paragraph(text)
            table = document.add_table(rows=2, cols=2)
            table.cell(1, 1).text = f"cell {n * 7919}"
            texts[name].append(f"cell {n * 7919}")
            document.save(self.path(name + ".docx"))
            paths.append(self.path(name + ".docx"))
        self.do("""
import glob, os, subprocess, zipfile
files = sorted(glob.glob('/mnt/data/*.docx'))
os.makedirs('/mnt/data/pdf', exist_ok=True)
result = subprocess.run(['soffice', '--headless', '--convert-to', 'pdf', '--outdir', '/mnt/data/pdf', *files],
                        capture_output=True, text=True)
if result.returncode != 0:
    raise RuntimeError(result.stderr)
with zipfile.ZipFile('/mnt/data/documents.zip', 'w', zipfile.ZIP_DEFLATED) as archive:
    for path in sorted(glob.glob('/mnt/data/pdf/*.pdf')):
        archive.write(path, os.path.basename(path))
print(len(files), 'converted')
""", *paths)
        with zipfile.ZipFile(self.out("documents.zip")) as archive:
            self.assertIsNone(archive.testzip())
            self.assertEqual(sorted(archive.namelist()), sorted(name + ".pdf" for name in texts))
            archive.extractall(self.path("unpacked"))
        for name, expected in texts.items():
            text = " ".join(text_of(self.path("unpacked", name + ".pdf")).split())
            for part in expected:
                self.assertIn(part, text)

    def test_every_script_in_libreoffice(self):
        """A character a line, in lines of a known height."""
        height = 20
        characters = [c for text in SCRIPTS.values() for c in text] + [MISSING]
        document = docx.Document()
        for character in characters:
            paragraph = document.add_paragraph(character)
            paragraph.paragraph_format.line_spacing = Pt(height)
            paragraph.paragraph_format.space_after = Pt(0)
        document.save(self.path("scripts.docx"))
        self.do("!libreoffice --headless --convert-to pdf scripts.docx > /dev/null", self.path("scripts.docx"))
        scale = 3
        subprocess.run(["pdftoppm", "-r", str(72 * scale), "-singlefile", "-png", self.out("scripts.pdf"),
                        self.path("out", "page")], check=True)
        page = self.picture("page.png")
        lines = [cut(page[(72 + n * height) * scale:(72 + (n + 1) * height) * scale].sum(axis=2) < 400)
                 for n in range(len(characters))]
        for n, line in enumerate(lines):
            if characters[n] != MISSING:
                self.assertGreater(line.size, 200, f"{characters[n]} is not drawn")
            for other in range(n):
                self.assertFalse(same(line, lines[other]), f"{characters[n]} looks like {characters[other]}")

    def test_a_workbook_to_pdf_by_its_full_path(self):
        import openpyxl
        book = openpyxl.Workbook()
        for row in (["item", "price"], ["apple", 1.5], ["pear", 2.25], ["sum", "=SUM(B2:B3)"]):
            book.active.append(row)
        book.save(self.path("prices.xlsx"))
        self.do("""
import subprocess
subprocess.run(["/usr/bin/soffice", "--headless", "--convert-to", "pdf", "prices.xlsx"], check=True, capture_output=True)
""", self.path("prices.xlsx"))
        self.assertRegex(text_of(self.out("prices.pdf")), r"sum +3[.,]75")

    def test_markdown_to_word_by_pandoc(self):
        self.do("""
import subprocess
with open("notes.md", "w") as f:
    f.write("# Title\\n\\nSome *text*.\\n\\n- one\\n- two\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |\\n")
subprocess.run(["pandoc", "notes.md", "-o", "notes.docx"], check=True)
""")
        document = docx.Document(self.out("notes.docx"))
        self.assertEqual([p.text for p in document.paragraphs if p.text], ["Title", "Some text.", "one", "two"])
        self.assertTrue(document.paragraphs[0].style.name.startswith("Heading"))
        self.assertEqual([[c.text for c in row.cells] for row in document.tables[0].rows], [["a", "b"], ["1", "2"]])

    def test_ocr_of_a_scanned_page(self):
        rng = random.Random(23)
        lines = [sentence(rng) for _ in range(12)] + ["Invoice 2024-117, total 1,284.50 EUR"]
        page = Image.new("L", (1240, 1100), 250)
        font = ImageFont.truetype("DejaVuSerif.ttf", 30)
        for n, line in enumerate(lines):
            ImageDraw.Draw(page).text((90, 80 + 70 * n), line, font=font, fill=30)
        page = page.rotate(0.4, fillcolor=250).filter(ImageFilter.GaussianBlur(0.8))
        noise = np.random.default_rng(23).normal(0, 12, (page.height, page.width))
        Image.fromarray(np.clip(np.asarray(page) + noise, 0, 255).astype("uint8")).save(self.path("scan.png"))
        self.do("""
import subprocess
from PIL import Image, ImageOps
img = ImageOps.autocontrast(Image.open("/mnt/data/scan.png").convert("L"))
img.save("/tmp/page.png")
text = subprocess.run(["tesseract", "/tmp/page.png", "stdout", "-l", "eng", "--psm", "6"],
                      capture_output=True, text=True, check=True).stdout
with open("/mnt/data/scan.txt", "w") as f:
    f.write(text)
print(text[:200])
""", self.path("scan.png"))
        with open(self.out("scan.txt")) as file:
            found = file.read()
        likeness = difflib.SequenceMatcher(None, " ".join(lines).split(), found.split(), autojunk=False).ratio()
        self.assertGreater(likeness, 0.97, found)
        self.assertIn("1,284.50", found)


def setUpModule():
    missing = [name for name in ("soffice", "pandoc", "pdftotext", "tesseract") if shutil.which(name) is None]
    if missing:
        raise unittest.SkipTest(f"there is no {', '.join(missing)}: see the group \"documents\" of tools/packages")
