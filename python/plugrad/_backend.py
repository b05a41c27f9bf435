"""Finds the package plugrad_backend, which has plugrad's libraries, and plugins of other packages.

A package with plugins has an entry point of the group plugrad.plugins, whose value is a module:
the libraries lie in its directory. A value with a slash is a directory, relative to site-packages.
"""
import os
import sys

from ._version import __version__

GROUP = "plugrad.plugins"
SEARCH_PATH = "PLUGRAD_PLUGIN_PATH"


def prefix() -> str:
    """The directory that has plugrad's bin, include, lib and share."""
    needed = f"plugrad-backend=={__version__}"
    try:
        import plugrad_backend as backend
    except ModuleNotFoundError as error:
        if error.name != "plugrad_backend":
            raise
        raise ImportError(f"plugrad {__version__} needs the package plugrad-backend, which is not "
                          f"installed: pip install {needed}") from None
    if getattr(backend, "__version__", None) is None or not all(os.path.exists(
            os.path.join(backend.prefix, "lib", f"libplugrad_{name}.so")) for name in ("core", "onnx")):
        raise ImportError("the package plugrad-backend has lost files: "
                          f"pip install --force-reinstall {needed}")
    if backend.__version__ != __version__:
        raise ImportError(f"plugrad {__version__} needs plugrad-backend {__version__}, but "
                          f"{backend.__version__} is in {backend.prefix}: pip install {needed}")
    return str(backend.prefix)


def has_plugins(directory: str) -> bool:
    """Whether a package in this directory of sys.path names plugins: importlib.metadata, which
    takes longer to import than plugrad itself, is used only then."""
    try:
        names = os.listdir(directory or ".")
    except OSError:
        return False
    for name in names:
        if not name.endswith((".dist-info", ".egg-info")):
            continue
        try:
            with open(os.path.join(directory, name, "entry_points.txt"), "rb") as file:
                if GROUP.encode() in file.read():
                    return True
        except OSError:
            pass
    return False


def module_directories(name: str) -> list[str]:
    import importlib.util
    spec = importlib.util.find_spec(name)
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return list(spec.submodule_search_locations)
    return [os.path.dirname(spec.origin)] if spec.origin else []


def plugin_directories() -> list[str]:
    """The directories that the installed packages' entry points name."""
    if not any(has_plugins(directory) for directory in sys.path):
        return []
    import importlib.metadata
    found: dict[str, None] = {}
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            if "/" in entry.value and entry.dist is not None:
                directories = [str(entry.dist.locate_file(entry.value))]
            else:
                directories = module_directories(entry.value)
        except Exception as error:  # a foreign package: the others and plugrad work without it
            directories = []
            reason = f": {error}"
        else:
            reason = ""
        if not directories:
            import warnings
            warnings.warn(f"the plugin {entry.name} is not used: its entry point names "
                          f"{entry.value}, which cannot be found{reason}", stacklevel=2)
        found |= dict.fromkeys(directories)
    return list(found)


def prepare() -> str:
    """Puts the packages' plugins on the search path, before plugrad reads it. Returns prefix()."""
    root = prefix()
    if directories := plugin_directories():
        paths = [path for path in os.environ.get(SEARCH_PATH, "").split(os.pathsep) if path]
        paths += [path for path in directories if path not in paths]
        os.environ[SEARCH_PATH] = os.pathsep.join(paths)
    return root
