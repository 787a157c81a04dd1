"""Where tasks come from: a checkout or folder, one file, an archive, or the published data set. Trusted side.

    folder with `level*/`, or one of these     KernelBench's layout: ids such as `level1/19_ReLU`
    any other folder of Python files           ids are the stems of the files
    NAME.py                                    one task
    NAME.tar, .tar.gz, .tgz, .zip              a checkout or folder, read in memory
    folder with, or one, .parquet .arrow .jsonl    the data set

A folder that holds both task files and data files is taken for a folder of tasks.
"""

from pathlib import Path

from ..errors import InvalidRequest
from .archive import SUFFIXES as ARCHIVE_SUFFIXES
from .archive import is_archive, read_archive
from .dataset import SUFFIXES as DATA_SUFFIXES
from .dataset import data_files, read_dataset
from .folder import read_folder, read_single
from .listing import Listing, listing_of


def read_source(name: str) -> Listing:
    """Tasks of the source at the path `name`; at least one.

    Raises:
        InvalidRequest: There is no such thing, it cannot be read, or holds no task.
    """
    path = Path(name)
    if not path.exists():
        raise InvalidRequest(f"task source {path.name!r} does not exist")
    listing = _read(path)
    if not listing.entries and listing.skipped:
        raise InvalidRequest(f"task source {path.name!r} holds nothing but level 4: {listing.skipped[0].reason}")
    if not listing.entries:
        raise InvalidRequest(f"task source {path.name!r} holds no task file")
    return listing


def _read(path: Path) -> Listing:
    if path.is_dir():
        listing = listing_of(read_folder(path))
        if not (listing.entries or listing.skipped) and data_files(path):
            return read_dataset(path)
        return listing
    if is_archive(path):
        return listing_of(read_archive(path))
    if path.suffix == ".py":
        return listing_of(read_single(path))
    if data_files(path):
        return read_dataset(path)
    known = ", ".join((".py", *ARCHIVE_SUFFIXES, *DATA_SUFFIXES))
    raise InvalidRequest(f"task source {path.name!r} is none of the files that hold tasks: {known}")
