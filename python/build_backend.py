"""Builds the wheel of 'pip install .' with CMake. It needs no package from the network (PEP 517)."""

import base64
import hashlib
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
READY = os.environ.get("KIBITZ_BUILD_DIR")  # A build folder with the extension in it; else one is made.
BUILD = Path(READY) if READY else ROOT / "build-python"


def _fields():
    """Name, version, summary and the rest of [project] in pyproject.toml, which has one line a key."""
    fields = {}
    for line in (ROOT / "pyproject.toml").read_text().split("[project]")[1].splitlines():
        key, equals, value = line.partition(" = ")
        if equals:
            fields[key] = value.strip('"')
    return fields


def _build():
    if READY:
        return
    subprocess.run(
        ["cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DKIBITZ_TESTS=OFF", "-DKIBITZ_TORCH=OFF", "-DKIBITZ_PYTHON=ON",
         f"-DPython_EXECUTABLE={sys.executable}"],
        check=True)
    jobs = str(os.cpu_count() or 1)
    subprocess.run(["cmake", "--build", BUILD, "--target", "kibitz_python", "-j", jobs], check=True)


def _files():
    """Name in the wheel and path of each file: the module, the models that ship, DuckDB's library."""
    for path in sorted((ROOT / "python" / "kibitz").iterdir()):
        if path.is_file() and path.suffix in (".py", ".pyi", ".typed"):
            yield f"kibitz/{path.name}", path
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    yield f"kibitz/_kibitz{suffix}", BUILD / "python" / "kibitz" / f"_kibitz{suffix}"
    for folder in ("models", "data"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file():
                yield f"kibitz/share/{path.relative_to(ROOT)}", path


def _metadata(fields):
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    info = f"kibitz-{fields['version']}.dist-info"
    return f"{tag}-{tag}-{platform}", info, {
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: kibitz\n"
                            f"Version: {fields['version']}\nSummary: {fields['description']}\n"
                            f"Requires-Python: {fields['requires-python']}\nRequires-Dist: numpy\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: kibitz\nRoot-Is-Purelib: false\n"
                         f"Tag: {tag}-{tag}-{platform}\n",
    }


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    _, info, texts = _metadata(_fields())
    for path, text in texts.items():
        (Path(metadata_directory) / path).parent.mkdir(exist_ok=True)
        (Path(metadata_directory) / path).write_text(text)
    return info


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _build()
    fields = _fields()
    tag, info, texts = _metadata(fields)
    name = f"kibitz-{fields['version']}-{tag}.whl"
    records = []
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(path, content):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            records.append(f"{path},sha256={digest},{len(content)}")
            wheel.writestr(path, content)
        for path, source in _files():
            add(path, source.read_bytes())
        for path, text in texts.items():
            add(path, text.encode())
        wheel.writestr(f"{info}/RECORD", "\n".join(records + [f"{info}/RECORD,,"]) + "\n")
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise RuntimeError("no source distribution: install from the checkout with 'pip install .'")
