"""How rules and loops are compiled: six decorators, one binding, one cache that is never stale.

A *kernel* is a function that runs inside the simulator's loop or the router's call. It sees arrays and numbers, allocates
nothing, and is inlined into its callers; a *rare* one is not. An *inlined* function is copied into its callers before they are
compiled. A *builder* may allocate; it runs once, before the first round.

A driver (the simulator's loop, say) takes the functions of a rule as arguments. `bind` fixes those arguments and returns a
compiled function that is kept on disk (`thrifty.kernel_cache`). Its file is named by a fingerprint of everything it was built from
(`thrifty.fingerprint`): a change of any of it changes the name, and an old kernel is never found again. See docs/decisions/002.
"""

import hashlib
import inspect
import re
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from functools import cache, wraps
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import numba
import numpy as np

from thrifty.fingerprint import Rebuilder, fingerprint, is_finished, is_of_package
from thrifty.kernel_cache import KernelFiles, is_kept

F = TypeVar("F", bound=Callable[..., Any])

# A kernel compiled for arm statistics also serves records that begin with the same fields; numba calls that experimental.
warnings.filterwarnings("ignore", category=numba.core.errors.NumbaExperimentalFeatureWarning)

_PACKAGE = Path(__file__).parent
_binding = threading.Lock()

_BOUND_SOURCE = """\
def bound({arguments}):
    return drive({everything})
"""


def _jit(function: F, **options: Any) -> F:
    compiled: Any = numba.njit(error_model="numpy", **options)(function)
    return compiled  # type: ignore[no-any-return]


def kernel(function: F) -> F:
    """Compile `function` for use inside a loop: inlined, no allocation, IEEE arithmetic.

    >>> @kernel
    ... def clip(x):
    ...     return min(max(x, 0.0), 1.0)
    >>> clip(1.5)
    1.0
    """
    # Reference counts of the arrays in a rule's tuples cost five times the arithmetic of a round; a kernel that allocates
    # nothing needs none (_nrt=False).
    return _jit(function, forceinline=True, _nrt=False)


def inlined(function: F) -> F:
    """Let numba copy `function` into the kernels and drivers that call it, before it looks at types.

    It is not compiled on its own. A kernel would be, and optimised with all that it calls, and so would each kernel around it.

    >>> @inlined
    ... def twice(x):
    ...     return 2.0 * x
    >>> kernel(lambda x: twice(twice(x)))(1.5)
    6.0
    """
    return _jit(function, inline="always")


def rare(function: F) -> F:
    """Compile `function` like a kernel, but apart from its callers: a seldom taken branch that would crowd a hot loop.

    Its first line must be `stay_apart()`.

    >>> @rare
    ... def halve(x):
    ...     stay_apart()
    ...     return x / 2
    >>> halve(3.0)
    1.5
    """
    # Said aloud: a callee inherits forceinline from its caller.
    return _jit(function, forceinline=False, _nrt=False)


def _keep_out_of_line(_typing_context: Any) -> Any:
    def generate(context: Any, llvm_builder: Any, _signature: Any, _arguments: Any) -> Any:
        llvm_builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return numba.types.none(), generate


def _do_nothing() -> None:
    """Plain Python inlines nothing."""


stay_apart: Any = _do_nothing if numba.config.DISABLE_JIT else numba.extending.intrinsic(_keep_out_of_line)  # type: ignore[attr-defined]
"""Said by a `rare` function: the compiler must not inline it."""


def builder(function: F) -> F:
    """Compile `function`, which allocates what kernels work on.

    >>> import numpy as np
    >>> @builder
    ... def two(n):
    ...     return np.full(n, 2.0)
    >>> two(2).tolist()
    [2.0, 2.0]
    """
    return _jit(function, forceinline=False)


def record(fields: list[tuple[str, type]]) -> np.dtype[Any]:
    """The dtype of a record with named fields: arrays of it read `array[i].field`, in compiled code and in plain Python alike.

    >>> import numpy as np
    >>> point = np.zeros(1, record([("x", np.float64)]))
    >>> point[0].x += 2
    >>> float(point[0].x)
    2.0
    """
    return np.dtype((np.record, fields))


@kernel
def index(position):
    """`position`, which is not negative. Telling the compiler so saves it Python's wrap-around at every use as an index."""
    return position & 0x7FFF_FFFF_FFFF_FFFF


def driver(function: F) -> F:
    """Compile `function`, whose first arguments are the functions of a rule; `bind` makes it callable.

    It is inlined into the bound function so that no address of a function remains: numba keeps no kernel that holds one.
    """
    return _jit(function, forceinline=True)


def kept(function: F) -> F:
    """Compile `function`, which only Python calls, and keep what was compiled on disk. A builder is compiled in every process.

    >>> @kept
    ... def twice(x):
    ...     return 2.0 * x
    >>> twice(1.5)
    3.0
    """
    drive = driver(function)

    @cache
    def bound() -> Callable[..., Any]:
        return bind(drive, {}, name=function.__name__)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return bound()(*arguments)

    return call  # type: ignore[return-value]


@cache
def source_digest() -> str:
    """Sixteen hexadecimal digits that change whenever any source file of the package does."""
    digest = hashlib.sha256()
    for path in sorted(_PACKAGE.rglob("*.py")):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def bind(drive: Callable[..., Any], constants: Mapping[str, Any], *, name: str, short: bool = False) -> Callable[..., Any]:
    """`drive` with its first arguments fixed, as one compiled function that is kept on disk.

    Parameters
    ----------
    drive : a driver whose first arguments are `constants`, in order
    constants : compiled functions, or named tuples and named-tuple classes of them, known at compile time
    name : what to call the file, for people who look into the cache folder
    short : True for a driver that returns within microseconds and allocates nothing. It keeps the interpreter lock, and its arrays
        are not reference-counted: both would take longer than its work

    """
    module_name = _bound_name(drive, constants, name, short)
    with _binding:
        if module_name not in sys.modules:
            _load_bound_module(module_name, drive, constants, short)
    bound: Callable[..., Any] = sys.modules[module_name].bound
    return bound


def is_cached(drive: Callable[..., Any], constants: Mapping[str, Any], *, name: str, short: bool = False) -> bool:
    """Whether `bind` with the same arguments finds a compiled function on disk, or in this process."""
    module_name = _bound_name(drive, constants, name, short)
    with _binding:  # another thread may be loading it: a module is in sys.modules before it has its content
        if module_name in sys.modules and getattr(sys.modules[module_name].bound, "signatures", True):
            return True
    return is_kept(module_name)


def _bound_name(drive: Callable[..., Any], constants: Mapping[str, Any], name: str, short: bool) -> str:
    return f"thrifty_{re.sub(r'[^a-z0-9]+', '_', name)}_{fingerprint(drive, *constants.values(), short)}"


def _load_bound_module(module_name: str, drive: Callable[..., Any], constants: Mapping[str, Any], short: bool) -> None:
    parameters = list(inspect.signature(getattr(drive, "py_func", drive)).parameters)
    rest = parameters[len(constants) :]  # spelled out: a starred call would turn the functions into values and lose their inlining
    text = _BOUND_SOURCE.format(everything=", ".join([*constants, *rest]), arguments=", ".join(rest))
    module = ModuleType(module_name)
    # A user's function that was compiled before may hold what its globals were then: it is compiled again, as it is now.
    # Numba imports the module of every function when it reads its cache, and that of a notebook or a policy file may not be there.
    own = Rebuilder(_compile_again, wanted=lambda each: not is_of_package(each) and not is_finished(each), module=module_name)
    module.__dict__.update({name: own.rebuild(value) for name, value in constants.items()}, drive=own.rebuild(drive))
    sys.modules[module_name] = module  # numba looks the module up by name when it reads its cache
    try:
        exec(compile(text, f"<{module_name}>", "exec"), module.__dict__)
        module.bound = _compile_bound(module_name, module.bound, short)  # type: ignore[attr-defined]
    except BaseException:
        del sys.modules[module_name]
        raise


def _compile_bound(module_name: str, bound: Callable[..., Any], short: bool) -> Callable[..., Any]:
    compiled: Any = _jit(bound, **({"_nrt": False} if short else {"nogil": True}))
    if compiled is not bound:  # it is where nothing is compiled
        compiled._cache = KernelFiles(module_name)
    return compiled  # type: ignore[no-any-return]


def interpreted(function: F) -> F:
    """`function` and everything it calls as plain Python: slow, the same results to the bit, and nothing is compiled.

    >>> interpreted(index)(3)
    3
    """
    plain: F = Rebuilder(_keep_plain, wanted=lambda each: not is_of_package(each), rest=_package.rebuild).rebuild(function)
    return plain


def _keep_plain(copy: FunctionType, _compiled: Any) -> FunctionType:
    return copy


_package = Rebuilder(_keep_plain, rest=lambda value: _do_nothing if value is stay_apart else value)  # what it made is shared by all


def _compile_again(copy: FunctionType, compiled: Any) -> Any:
    return numba.jit(**{"nopython": True, **compiled.targetoptions, "locals": compiled.locals})(copy)
