"""As much of curl as the documentation uses, for machines that have none: -sS, -X METHOD, -H HEADER, -d DATA and a URL."""

import argparse
import sys
import urllib.request


def main() -> None:
    """Send one request and print the body of the answer; an error status is an exception."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-S", action="store_true")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", dest="data")
    asked = parser.parse_args()
    headers = dict(header.split(": ", 1) for header in asked.headers)
    data = None if asked.data is None else asked.data.encode()
    request = urllib.request.Request(f"http://{asked.url.removeprefix('http://')}", data, headers, method=asked.method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        sys.stdout.write(answer.read().decode())


if __name__ == "__main__":
    main()
