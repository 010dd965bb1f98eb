# SPDX-License-Identifier: MIT
# A thousand models and states, one after the other.
set -e
"$SOTTO_BUILD/tests/test_life" 1000
