#!/usr/bin/env python3
"""The page at `/`, in a headless Chromium; ends with 77, which means skipped, where there is none.

page_test.py FOLDER_OF_PROGRAMS [FOLDER_FOR_SCREENSHOTS]
"""
import os
import pathlib
import subprocess
import sys
import time

from browser import Browser, chromium
from server import Checks, Model, Server


def file_in(folder, ending, seconds=30):
    """The content of a file that comes; None where it does not."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for path in folder.iterdir():
            if path.name.endswith(ending):
                return path.read_bytes()
        time.sleep(0.05)
    return None


def npy(side, depth):
    shape = f"({depth}, {side}, {side})"
    header = f"{{'descr': '<u2', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(range(256)) * (depth * side * side // 128)


def main():
    if chromium() is None:
        print("skipped: no Chromium")
        return 1 if "CYTRA_REQUIRE_READERS" in os.environ else 77
    checks = Checks()
    model = Model(sys.argv[1])
    model.words = ["performance.backend=eager"]
    pictures = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else model.folder
    downloads = model.folder / "downloads"
    downloads.mkdir()
    image = model.images[-1]
    with Server(model, *model.words) as server, Browser() as browser:
        text = lambda name: browser.value(f"document.getElementById('{name}').textContent")
        is_idle = "document.getElementById('status').textContent === '' && "
        browser.open(server.url + "/")
        checks.expect(browser.until("document.getElementById('error').textContent.includes('no token') && "
                                    "document.getElementById('error').textContent.includes('printed as `token`')"), f"without a token: {text('error')}")
        browser.said.clear()  # the refused request
        browser.ask("Page.navigate", url="about:blank")  # open() waits for another page
        browser.open(server.start["page"])
        checks.expect(browser.until("document.getElementById('model').value === 'last'"), "the model is listed")
        checks.expect(browser.value("location.hash") == "", "the token is not left in the address")
        browser.save_downloads(downloads)
        browser.drop_file("#drop", image)
        checks.expect(browser.until("!document.getElementById('result').hidden"), f"a TIFF is dropped: {text('error')}")
        checks.expect(browser.value("document.getElementById('file').files[0].name") == image.name, "its name is shown")
        checks.expect(browser.value("document.getElementById('canvas').width") == 64, "the canvas has the image's size")
        checks.expect(not browser.value("document.getElementById('threshold_row').hidden"), "the threshold can be moved")
        browser.screenshot(pictures / "page.png")
        shares = []
        for threshold in 0, 0.5, 1:
            browser.value(f"(t => {{ t.value = {threshold}; t.oninput(); }})(document.getElementById('threshold'))")
            shares.append(float(text("about").split(", ")[1].split(" %")[0]))
        checks.expect(shares[0] > shares[1] >= shares[2] == 0, f"foreground at the thresholds 0, 0.5, 1: {shares} %")
        # The overlay is the mask that /predict gives.
        share = browser.value("""(async () => { const mask = await bitmap(await (await ask(`predict?${query(file.name, {format: 'png'})}`, file)).blob());
            const place = new OffscreenCanvas(64, 64).getContext('2d'); place.drawImage(mask, 0, 0);
            return place.getImageData(0, 0, 64, 64).data.filter((v, i) => i % 4 === 0 && v > 0).length / 64 / 64 * 100; })()""")
        checks.expect(abs(share - shares[1]) < 0.06, f"the share of the mask: {share} %")
        browser.value("(t => { t.value = 0.5; t.oninput(); })(document.getElementById('threshold'))")
        browser.value("document.getElementById('save_image').click()")
        saved = file_in(downloads, ".tif")
        checks.expect(saved == open(model.predict(image)["prediction"], "rb").read(), "the result that is saved is that of predict")
        browser.value("(f => { f.value = 'png'; document.getElementById('save_image').click(); })(document.getElementById('format'))")
        saved = file_in(downloads, ".png")
        checks.expect(saved and saved == open(model.predict(image, "predict.format=png")["prediction"], "rb").read(), "as PNG")
        browser.value("document.getElementById('save_table').click()")
        table = file_in(downloads, ".csv")
        checks.expect(table and table.startswith(b"label,"), f"the table: {(table or text('error').encode())[:60]}")
        bad = model.folder / "bad.tif"
        bad.write_bytes(b"II*\0" + bytes(20))
        browser.choose_file("#file", bad)
        checks.expect(browser.until(is_idle + "document.getElementById('error').textContent.includes('bad.tif')"),
                      f"a broken file: {text('error')}")
        browser.choose_file("#file", image)
        checks.expect(browser.until("!document.getElementById('result').hidden") and text("error") == "", "then the image again")
        large = model.folder / "large.npy"
        large.write_bytes(npy(2048, 1))
        browser.choose_file("#file", large)
        checks.expect(browser.until("document.getElementById('status').textContent.includes(' %')"), f"a large image tells how far it is: {text('status')}")
        checks.expect(browser.until(is_idle + "!document.getElementById('result').hidden", 90) and "2048" in text("about"), f"and is shown: {text('about')}")
        refused = [words for words in browser.said if "Content Security Policy" in words or "Uncaught" in words]
        checks.expect(not refused, f"the console: {browser.said}")
        done = browser.value("""(async () => { try { await fetch('https://example.org/'); return 'sent'; } catch { return 'refused'; } })()""")
        checks.expect(done == "refused" and any("Content Security Policy" in words for words in browser.said),
                      "the page can ask no other server")
        browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        browser.screenshot(pictures / "page_dark.png")
    with Server(model, *model.words, f"trainings={model.folder}") as server, Browser() as browser:
        browser.open(server.start["page"].replace("/#", "/trainings#"))
        checks.expect(browser.until("document.querySelector('#runs button')?.textContent === 'run'"),
                      "the training is listed")
        browser.value("document.querySelector('#runs button').click()")
        checks.expect(browser.until("document.getElementById('report').srcdoc.includes('<h1>')"), "its report is shown")
        time.sleep(1)
        browser.screenshot(pictures / "trainings.png")
        refused = [words for words in browser.said if "Uncaught" in words or "style" in words or "frame" in words]
        live = subprocess.Popen([model.binaries / "train", "experiment=im2im/segmentation", "trainer.accelerator=cpu", "trainer.max_epochs=1000000",
                                 "patch_shape=[32,32]", "model.filters=[4,8,8]", f"data.path={model.samples}", "trainer.steps_per_epoch=3", "callbacks.early_stopping=null",
                                 f"paths.output_dir={model.folder}/live"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            checks.expect(browser.until("document.getElementById('runs').textContent.includes('live runs')", 90), "a training that runs is listed")
            browser.value("document.querySelector('#runs button').click()")
            checks.expect(browser.until("document.getElementById('report').srcdoc.includes('running</span>')"), "its report says so")
            browser.value("window.first_report = document.getElementById('report').srcdoc; 0")
            checks.expect(browser.until("document.getElementById('report').srcdoc !== window.first_report", 120), "and is shown anew")
        finally:
            live.terminate()
            live.wait(60)
        checks.expect(browser.until("document.getElementById('runs').textContent.includes('live ended')"), "it has ended")
        checks.expect(not refused, f"the console: {browser.said}")
    with Server(model, *model.words) as server, Browser() as browser:  # a stack, plane by plane
        text = lambda name: browser.value(f"document.getElementById('{name}').textContent")
        stack = model.folder / "stack.npy"
        stack.write_bytes(npy(64, 4))
        browser.open(server.start["page"])
        browser.until("document.getElementById('model').value === 'last'")
        browser.choose_file("#file", stack)
        checks.expect(browser.until(is_idle + "!document.getElementById('plane_row').hidden") and text("plane_text") == "2 of 4",
                      f"a stack: {text('plane_text')}, {text('about')} {text('error')}")
        browser.value("(p => { p.value = 0; p.onchange(); })(document.getElementById('plane'))")
        checks.expect(browser.until(is_idle + "document.getElementById('plane_text').textContent === '0 of 4'"), "another plane of it")
        lapse = model.folder / "lapse.nrrd"
        lapse.write_bytes(b"NRRD0004\ntype: uint16\ndimension: 3\nsizes: 64 64 3\nkinds: domain domain time\nencoding: raw\nendian: little\n\n" + stack.read_bytes()[128:24704])
        browser.choose_file("#file", lapse)
        shown = is_idle + "!document.getElementById('result').hidden && !document.getElementById('timepoint').parentNode.hidden"
        checks.expect(browser.until(shown), f"a time lapse asks for the time point: {text('about')} {text('error')}")
        browser.value("(p => { p.value = 3; p.onchange(); })(document.getElementById('timepoint'))")
        checks.expect(browser.until("document.getElementById('error').textContent.includes('time')"), f"one beyond: {text('error')}")
        browser.value("(p => { p.value = 2; p.onchange(); })(document.getElementById('timepoint'))")
        checks.expect(browser.until(is_idle + "document.getElementById('error').textContent === ''"), "another one")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
