"""What submissions are built with keeps working inside: compilers, ninja, Python's headers, torch."""

import shutil
from typing import Any

import pytest


def test_threads_of_cpp_program_run(host: Any) -> None:
    source = r"""
import subprocess
open('t.cpp', 'w').write('#include <thread>\n#include <vector>\n#include <atomic>\nint main() { std::atomic<int> n{0}; '
    'std::vector<std::thread> v; for (int i = 0; i < 8; ++i) v.emplace_back([&] { ++n; }); for (auto& t : v) t.join(); '
    'return n == 8 ? 0 : 1; }\n')
subprocess.run(['g++', '-pthread', 't.cpp', '-o', 't'], check=True)
print(subprocess.run(['./t']).returncode)
"""
    assert host.run(source) == "0"


def test_ninja_builds_python_extension_in_parallel(host: Any) -> None:
    """As torch.utils.cpp_extension does it: ninja, several compilers, Python's headers, then the import."""
    if shutil.which("ninja") is None:
        pytest.skip("no ninja")
    source = r"""
import subprocess, sys, sysconfig
open("one.c", "w").write('''
#include <Python.h>
int two(void);
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "ext", 0, -1, 0};
PyMODINIT_FUNC PyInit_ext(void) {
    PyObject* module = PyModule_Create(&definition);
    PyModule_AddIntConstant(module, "two", two());
    return module;
}
''')
open("two.c", "w").write("int two(void) { return 2; }")
open("build.ninja", "w").write(f'''
rule cc
  command = gcc -fPIC -fopenmp -I{sysconfig.get_paths()["include"]} -c $in -o $out
rule ld
  command = gcc -shared -fopenmp $in -o $out
build one.o: cc one.c
build two.o: cc two.c
build ext.so: ld one.o two.o
''')
subprocess.run(["ninja", "-v"], check=True, stdout=subprocess.DEVNULL)
sys.path.insert(0, ".")
import ext
print(ext.two)
"""
    assert host.run(source) == "2"


def test_nvcc_compiles(strong: Any) -> None:
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc")
    source = r"""
import subprocess
open('k.cu', 'w').write('__global__ void f(float* x) { x[0] = 1; }\n')
print(subprocess.run(['nvcc', '-c', 'k.cu', '-o', 'k.o', '-arch=sm_90']).returncode)
"""
    assert strong.run(source) == "0"


def test_torch_runs_in_several_threads(strong: Any) -> None:
    source = """
import torch
torch.set_num_threads(2)
x = torch.ones(256, 256)
print(int((x @ x).sum()), torch.get_num_threads())
"""
    assert strong.run(source) == f"{256**3} 2"
