"""Compile the kernels of a policy into the cache: `python -m thrifty.router.compile_policy POLICY known|unknown [apart]`."""

import sys


def main(arguments: list[str]) -> int:
    """Compile, or say in one line why not."""
    from thrifty.router.engine import engine_for

    spec, costs, *apart = arguments
    try:
        engine_for(spec, apart=bool(apart)).code(costs == "known").load()
    except ValueError as error:  # one line already
        print(error, file=sys.stderr)
        return 1
    except Exception as error:  # whatever the compiler raises is one line for whoever asked
        print(f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
