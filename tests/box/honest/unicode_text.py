# tries: text of the whole world, in output, files, names and pipes
# prints: 日本語 中文 한국어 العربية ελληνικά 🎉 é
import subprocess
import sys
text = "日本語 中文 한국어 العربية ελληνικά 🎉 é"
print(text)
with open("datei_ü_日本.txt", "w") as f:
    f.write(text)
assert open("datei_ü_日本.txt").read() == text
assert sys.getdefaultencoding() == "utf-8" and sys.stdout.encoding.lower() == "utf-8"
assert sys.getfilesystemencoding() == "utf-8"
assert subprocess.run(["cat"], input=text, capture_output=True, text=True).stdout == text
größe = "naïve".upper()
assert größe == "NAÏVE"
print("OK")
