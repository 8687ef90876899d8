"""`python -m dossier_client`."""

import sys

from .main import main

sys.exit(main())
