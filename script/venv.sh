# Sourced by script/up, script/down and script/test: the virtual environment in .venv.

# Prints the command of a Python that can run the horde; fails with advice when there is none.
find_python() {
    for candidate in python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
            if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
                echo "$candidate"
                return 0
            fi
            echo "$candidate cannot make virtual environments: install its venv package (python3-venv)." >&2
            return 1
        fi
    done
    echo "Python 3.11, 3.12 or 3.13 is needed; found $(python3 --version 2>&1 || echo none). Install one of them." >&2
    return 1
}

# A HORDE_HOME relative to where the person stands, as they meant it; the scripts work in the checkout.
resolve_home() {
    case "${HORDE_HOME:-/}" in
    /*) ;;
    *) export HORDE_HOME="$1/$HORDE_HOME" ;;
    esac
}

# Whether .venv is whole, was made in this place, and has a Python that can run the horde.
usable_venv() {
    grep -qF "$(pwd)/.venv" .venv/bin/activate 2>/dev/null &&
        .venv/bin/python -c 'import pip, sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

# installed FILE: whether .venv holds what FILE pins and this package as pyproject.toml describes it.
installed() {
    [ -f .venv/installed ] && usable_venv && cat "$1" pyproject.toml | cmp -s - .venv/installed
}

# install FILE: brings .venv to the packages that FILE pins; does nothing when they are there.
install() {
    if installed "$1"; then
        return 0
    fi
    if ! usable_venv; then
        python=$(find_python) || return 1
        echo "Making a virtual environment in .venv with $("$python" --version)"
        "$python" -m venv --clear .venv || return 1
    fi
    rm -f .venv/installed
    echo "Installing the packages of $1 into .venv; the first time takes some minutes"
    .venv/bin/python -m pip install --disable-pip-version-check --requirement "$1" || return 1
    .venv/bin/python -m pip install --disable-pip-version-check --quiet --no-deps --editable . || return 1
    cat "$1" pyproject.toml >.venv/installed
}
