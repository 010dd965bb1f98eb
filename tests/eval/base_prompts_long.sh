# SPDX-License-Identifier: MIT
# All prompts rather than a tenth, without and with fallback.
set -e
cd "$SOTTO_SOURCE"
.venv/bin/python tests/eval/test_base_prompts.py --all
.venv/bin/python tests/eval/test_base_prompts.py --all --fallback
