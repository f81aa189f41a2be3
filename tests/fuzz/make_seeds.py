"""make_seeds.py FOLDER: the golden cases as seeds of the fuzz targets."""
import json
import pathlib
import sys

golden = pathlib.Path(__file__).parent.parent / "golden"
out = pathlib.Path(sys.argv[1])


def write(target, texts):
    folder = out / target
    folder.mkdir(parents=True, exist_ok=True)
    for i, text in enumerate(sorted(set(texts))):
        (folder / f"golden_{i:04}").write_bytes(text.encode(errors="surrogateescape"))


def strings(value):
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from strings(part)


def main():
    config = json.loads((golden / "config.json").read_text())
    composer, overrides = [], []
    for case in config["cases"]:
        files = config["trees"][case["tree"]]
        lines = list(case["overrides"])
        for name, text in files.items():
            lines += ["@@ " + name.removesuffix(".yaml"), text]
        composer.append("\n".join(lines))
        overrides += case["overrides"]
    yaml = [text for files in config["trees"] for text in files.values()]
    values = [line.split(":", 1)[-1].strip() for text in yaml for line in text.splitlines() if "${" in line]
    for name, target in (("overrides", overrides), ("interpolation", values)):
        if (golden / f"{name}.json").exists():
            target += [s for s in strings(json.loads((golden / f"{name}.json").read_text())) if len(s) < 1000]
    write("composer", composer)
    write("overrides", overrides)
    write("yaml", yaml)
    write("interpolation", values)


if __name__ == "__main__":
    main()
