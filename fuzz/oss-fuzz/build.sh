#!/bin/bash -eu
# One fuzz target for each harness, with its seeds and its dictionary. Kernels run as Python: libFuzzer sees their lines.
python3 -m pip install ".[capture,tls,events,fuzz,values]" fastavro

for name in $(python3 -m fuzz --list); do
    cat >"fuzz_$name.py" <<PY
import os
import sys

os.environ["NUMBA_DISABLE_JIT"] = "1"
from fuzz._guided import target

target("$name", sys.argv[1:])
PY
    compile_python_fuzzer "fuzz_$name.py" --collect-submodules kwire --collect-data kwire --hidden-import "fuzz.$name" \
        --add-data schemas:schemas --add-data tests/golden:tests/golden
    python3 -m fuzz --only "$name" --write-seeds "seeds/$name"
    cp "seeds/$name/words" "$OUT/fuzz_$name.dict"
    zip -jqr "$OUT/fuzz_${name}_seed_corpus.zip" "seeds/$name/seeds"
done
