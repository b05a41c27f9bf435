"""poster.py FILE.png: a picture with three lines of text."""
import sys

from PIL import Image, ImageDraw, ImageFont

picture = Image.new("RGB", (640, 300), (245, 240, 225))
draw = ImageDraw.Draw(picture)
for top, size, text in ((30, 44, "Plugins for chips"), (120, 28, "one small library,"), (190, 28, "40 networks by 17:30")):
    draw.text((40, top), text, fill=(30, 40, 60), font=ImageFont.load_default(size))
picture.save(sys.argv[1])
