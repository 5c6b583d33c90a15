"""Writes the files of tests/golden/run/npy by NumPy and gzip, and prints what
tests/golden/run/data_files.tl must say of them.

    python tests/peers/data_files.py tests/golden/run/npy
"""
import gzip
import struct
import sys
import zipfile

import numpy as np

folder = sys.argv[1]
arrays = {
    "f4": np.array([[1.5, -2.0, 3.25], [0.0, np.inf, 1e-3]], "<f4"),
    "big": np.asfortranarray(np.arange(24, dtype=">f8").reshape(2, 3, 4) / 4),
    "f2": np.array([1.5, 65504.0], "<f2"),
    "i2": np.array([-1, 300], ">i2"),
    "u2": np.array([65535, 1], "<u2"),
    "u4": np.array([4294967295, 7], "<u4"),
    "u8": np.array([1, 2**40], "<u8"),
    "b1": np.array([[True], [False]]),
    "i8": np.array(-5, "<i8"),
    "none": np.zeros((0, 3), "<f4"),
}
for name, a in arrays.items():
    np.save(f"{folder}/{name}.npy", a)
    print(name, a.shape, a.dtype, float(a.astype("f8").sum()))
np.save(f"{folder}/text.npy", np.array(["a", "b"]))
np.save(f"{folder}/record.npy", np.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]))
np.save(f"{folder}/object.npy", np.array([None, 1], dtype=object), allow_pickle=True)
np.savez(f"{folder}/plain.npz", a=arrays["f4"], b=arrays["i2"])
np.savez_compressed(f"{folder}/packed.npz", a=np.arange(1000, dtype="<f4"), b=arrays["b1"])
with zipfile.ZipFile(f"{folder}/mixed.npz", "w") as z:
    z.writestr("notes.txt", "hello")
    z.comment = b"a comment of the archive"
with gzip.GzipFile(f"{folder}/images.idx.gz", "wb", mtime=0) as f:
    f.write(struct.pack(">BBBBIII", 0, 0, 8, 3, 2, 2, 2) + bytes(range(8)))
with open(f"{folder}/floats.idx", "wb") as f:
    f.write(struct.pack(">BBBBI", 0, 0, 13, 1, 3) + struct.pack(">3f", 1.5, -2, 0.25))
