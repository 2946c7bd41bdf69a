# tries: time zones, locales, calendars
import datetime
import locale
import time
import zoneinfo
when = datetime.datetime(2024, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo("Europe/Vienna"))
assert when.utcoffset() == datetime.timedelta(hours=2)
assert locale.setlocale(locale.LC_ALL, "")
assert abs(time.time() - datetime.datetime.now(datetime.timezone.utc).timestamp()) < 5
assert time.strftime("%Y", time.gmtime(0)) == "1970"
print("OK")
