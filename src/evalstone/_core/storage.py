"""Files and folders, on this machine or where pyarrow reaches them: `s3://bucket/folder`, `gs://…`, `hdfs://…`.

Local paths need no library. Others need pyarrow, whose file systems read their keys, region and endpoint from the
environment, as the tools of their providers do.
"""

from __future__ import annotations

import errno
import functools
import importlib
import io
import os
import re
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any, cast

from evalstone._core.atomic_files import TEMPORARY, replacing
from evalstone._core.display import quoted
from evalstone._core.files import cannot_write, home_expanded, make_folder, resolved
from evalstone.errors import ConfigError, MissingDependency, StorageError, unknown

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://")
_DRIVE = re.compile(r"/[A-Za-z]:[/\\]")
"""The beginning of a path on Windows, as in `file:///C:/data`."""
_PATTERN = re.compile(r"[*?]")
_STORES = ("s3", "gs", "gcs", "abfs", "abfss")
"""Object stores show an object once all of it is there; on other file systems, a file is renamed."""
_SCHEMES = (*_STORES, "hdfs", "viewfs", "file")
_OF_BUCKETS = ("s3", "gs", "gcs")
"""The schemes whose addresses begin with a bucket, with which the path begins, too, rather than with a server."""
_OPTION = re.compile(r"\?(\w+)=")


def is_address(path: object) -> bool:
    """Whether a text is an address with a scheme, such as `s3://bucket/file`, rather than a local path."""
    return isinstance(path, str) and _SCHEME.match(path) is not None


def is_pattern(path: str) -> bool:
    """Whether a path has a wildcard: `*` or `?`."""
    return _PATTERN.search(path) is not None


def check_address(address: str) -> None:
    """Raise ConfigError for an address with options or keys: it is stored with results, and theirs is the environment.
    The message doesn't have the keys."""
    scheme, _, rest = address.partition("://")
    authority = re.split("[/?]", rest, maxsplit=1)[0]
    where = "keys are read from the environment"
    if scheme in _OF_BUCKETS and re.search("[:@]", authority):
        raise ConfigError(f"the address has a user or key before its bucket; {where}")
    if scheme in _SCHEMES and ":" in authority.rpartition("@")[0]:
        raise ConfigError(f"the address has a password; {where}")
    if scheme in _SCHEMES and scheme != "file" and (option := _OPTION.search(rest)):
        raise ConfigError(
            f"the address has the option {option[1]!r}, which isn't kept; endpoint and region are those of the "
            "environment, such as AWS_ENDPOINT_URL and AWS_DEFAULT_REGION"
        )


def _path_of_file(address: str) -> str:
    """The path in a `file` address. Raises ConfigError for one that isn't absolute, or not one on this system."""
    path = address.partition("://")[2].removeprefix("localhost")
    if not path.startswith("/"):
        raise ConfigError(f"{address} has no absolute path after file://, as file:///data/answers.jsonl has")
    if _DRIVE.match(path):
        if os.name != "nt":
            raise ConfigError(f"{address} is on a drive of Windows, which this system doesn't have")
        return path[1:]
    return path


@dataclass(frozen=True)
class Location:
    """A file or a folder.

    Methods raise ConfigError if it can't be reached or another path would help, and StorageError for a failed write.
    """

    path: str
    """The path on its file system."""
    scheme: str = ""
    """The scheme of its address; "" for a local path."""
    size: int = -1
    """The bytes of a file that was listed."""
    changed: str = ""
    """When a file that was listed was last changed."""
    server: str = ""
    """What is between the scheme and the path of its address, if that isn't a bucket: the host of HDFS, or the account
    of Azure, with the container in some forms."""

    @classmethod
    def of(cls, path: str | Path) -> Location:
        """The location at a local path or an address.

        Raises:
            ConfigError: The scheme is unknown, or pyarrow can't open the address.
            MissingDependency: It is no local path, and pyarrow isn't installed.
        """
        text = str(path)
        if not is_address(text):
            return cls(str(home_expanded(text)))
        scheme = text.partition("://")[0]
        if scheme == "file":
            return cls(_path_of_file(text))
        if scheme in ("http", "https"):
            raise ConfigError(f"{text} can't be read over HTTP: download the file and name its path")
        if scheme not in _SCHEMES:
            raise ConfigError(f"{text}: ", unknown("scheme", scheme, _SCHEMES))
        check_address(text)
        _, inner = _opened_system(text)
        if scheme in _OF_BUCKETS:
            return cls(inner.rstrip("/"), scheme)
        server = text.partition("://")[2].partition("/")[0]
        return cls(inner.strip("/") if scheme in _STORES else inner.rstrip("/"), scheme, server=server)

    def __str__(self) -> str:
        if not self.scheme or self.scheme in _OF_BUCKETS:
            return f"{self.scheme}://{self.path}" if self.scheme else self.path
        path = self.path.strip("/")
        if container := self._container:
            path = path.removeprefix(container).strip("/")
        return f"{self.scheme}://{self.server}/{path}"

    @property
    def _container(self) -> str:
        """The container that the server part of an Azure address names: `box` of `box@account.dfs.core.windows.net` and
        of `account@box`."""
        user, at, host = self.server.rpartition("@")
        if not at or self.scheme not in _STORES:
            return ""
        if host.endswith(".core.windows.net"):
            return user
        return "" if "." in host or ":" in host else host

    @property
    def absolute(self) -> Location:
        """The same location, whatever folder a process is in."""
        return self if self.scheme else replace(self, path=str(resolved(self.path)))

    def __truediv__(self, name: str) -> Location:
        path = f"{self.path.rstrip('/')}/{name}" if self.scheme else str(Path(self.path, name))
        return Location(path, self.scheme, server=self.server)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2] if self.scheme else Path(self.path).name

    @property
    def folder(self) -> Location:
        """The folder that it is in."""
        path = self.path.rstrip("/").rpartition("/")[0] if self.scheme else str(Path(self.path).parent)
        return Location(path, self.scheme, server=self.server)

    @property
    def local(self) -> Path | None:
        """The local path; None elsewhere."""
        return None if self.scheme else Path(self.path)

    def files(self, pattern: str = "*") -> list[Location]:
        """The files in this folder whose names match a pattern, by name, with their sizes and times of change. Names
        that begin with a dot, and files that are being written, are left out. Empty if there is no such folder."""
        shape = pattern.replace("[", "[[]")

        def is_listed(name: str) -> bool:
            return fnmatchcase(name, shape) and not name.startswith(".") and not name.endswith(TEMPORARY)

        found: list[Location] = []
        if (folder := self.local) is not None:
            try:
                entries = sorted(folder.iterdir()) if folder.is_dir() else []
                for entry in (one for one in entries if is_listed(one.name)):
                    with suppress(FileNotFoundError):  # another process may have removed it since
                        if stat.S_ISREG((about := entry.stat()).st_mode):
                            found.append(Location(str(entry), "", about.st_size, str(about.st_mtime_ns)))
            except OSError as error:
                raise self._unreadable(error) from None
        else:
            arrow: Any = importlib.import_module("pyarrow.fs")
            selector = arrow.FileSelector(self.path, allow_not_found=True)
            for about in sorted(self._call(lambda: self._system.get_file_info(selector)), key=lambda one: one.path):
                if about.type == arrow.FileType.File and is_listed(about.base_name):
                    changed = str(about.mtime_ns or "")
                    found.append(Location(about.path, self.scheme, about.size, changed, self.server))
        return found

    def found(self) -> Location | None:
        """The file with its size and time of change; None if there is none."""
        if (path := self.local) is not None:
            try:
                about = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                return None
            except (OSError, ValueError) as error:
                raise self._unreadable(error) from None
            return replace(self, size=about.st_size, changed=str(about.st_mtime_ns)) if path.is_file() else None
        arrow: Any = importlib.import_module("pyarrow.fs")
        about = self._call(lambda: self._system.get_file_info(self.path))
        if about.type != arrow.FileType.File:
            return None
        return replace(self, size=about.size, changed=str(about.mtime_ns or ""))

    def open(self) -> IO[bytes]:
        """The file, to read from any place."""
        if (path := self.local) is not None:
            try:
                return path.open("rb")
            except OSError as error:
                raise self._unreadable(error) from None
        return cast("IO[bytes]", self._call(lambda: self._system.open_input_file(self.path)))

    def read(self) -> bytes:
        """The content of a small file."""
        with self.open() as file:
            return self._call(file.read)

    def write(self, content: Callable[[IO[bytes]], object] | bytes) -> None:
        """Write the file in one step: whoever reads it finds all of it, or nothing. Folders are made.

        content: The bytes, or what writes them into a file.
        """
        if (path := self.local) is not None:
            try:
                make_folder(path.parent)
            except OSError as error:
                raise cannot_write(f"cannot write {quoted(self)}", error) from None
            with replacing(path) as file:
                _write(content, file)
            return
        is_store = self.scheme in _STORES
        target = self.path if is_store else f"{self.path}.{secrets.token_hex(4)}{TEMPORARY}"
        memory = io.BytesIO()
        _write(content, memory)

        def put() -> None:
            if not is_store:
                self._system.create_dir(self.path.rpartition("/")[0], recursive=True)
            stream = self._system.open_output_stream(target)
            try:
                with stream as file:
                    file.write(memory.getbuffer())
                if not is_store:
                    self._system.move(target, self.path)
            except BaseException:  # closing the stream made a file of what was written
                with suppress(OSError):
                    self._system.delete_file(target)
                raise

        self._call(put, writing=True)

    def remove(self) -> None:
        """Delete the file, if it is there."""
        if (path := self.local) is not None:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise cannot_write(f"cannot delete {quoted(self)}", error) from None
        elif self.found() is not None:
            self._call(lambda: self._system.delete_file(self.path), writing=True)

    @property
    def _system(self) -> Any:
        # Of its bucket or server: the endpoint, keys and region are those of the environment.
        if self.scheme in _OF_BUCKETS:
            return _opened_system(f"{self.scheme}://{self.path.partition('/')[0]}")[0]
        return _opened_system(f"{self.scheme}://{self.server}/")[0]

    def _call(self, work: Callable[[], Any], *, writing: bool = False) -> Any:
        try:
            return work()
        except OSError as error:
            if not writing:
                raise self._unreadable(error) from None
            message = " ".join(str(error).split())
            kind = ConfigError if error.errno in (errno.ENOENT, errno.EACCES) else StorageError
            raise kind(f"cannot write {quoted(self)}: {message}") from None

    def _unreadable(self, error: Exception) -> ConfigError:
        said = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
        return ConfigError(f"{self} cannot be read: {said}")


def _write(content: Callable[[IO[bytes]], object] | bytes, file: IO[bytes]) -> None:
    if isinstance(content, bytes):
        file.write(content)
    else:
        content(file)


@functools.lru_cache(maxsize=64)
def _opened_system(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path on it."""
    try:
        arrow: Any = importlib.import_module("pyarrow.fs")
    except ImportError:
        raise MissingDependency("pyarrow", "parquet") from None
    try:
        system, path = arrow.FileSystem.from_uri(address)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{address} cannot be opened: {' '.join(str(error).split())}") from None
    return system, path
