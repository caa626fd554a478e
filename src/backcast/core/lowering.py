"""Lower kernels one by one and optimise them once, together with everything they call.

Numba optimises each function with everything below it, generates machine code, and wraps it for Python and C, again at
every level of a loop. But kernels are inlined into their callers, so that all this is needed only once, for the kernel
that Python calls. A kernel that is called by another is therefore compiled by `Inlined`, which stops after lowering to
LLVM IR; one that is called from Python by `Whole`, which links everything lowered below it.

This module uses Numba internals. If they are missing, the import fails with an ImportError or an AttributeError, and
kernels are compiled as Numba compiles any function.
"""

import inspect
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering
from numba.core.untyped_passes import TranslateByteCode

from backcast.core import waiting
from backcast.core.shortcuts import OwnBuiltins, is_ours, less_of_the_same

_TAKEN = {  # Numba internals, besides the imported ones
    JITCodeLibrary: ("add_llvm_module", "finalize", "_raise_if_finalized", "enable_object_caching"),
    Flags: ("no_compile", "no_cpython_wrapper", "no_cfunc_wrapper"),
}
for _owner, _names in _TAKEN.items():
    for _name in _names:
        if not hasattr(_owner, _name):
            raise AttributeError(f"{_owner.__name__} has no {_name}")
if "pipeline_class" not in inspect.signature(numba.jit).parameters:
    raise AttributeError("numba.jit takes no pipeline_class")


_SEARCHES = {  # of Numba's passes: they look for `with`, closures, literal_unroll and functions that it inlines itself
    "with_lifting",
    "inline_closure_likes",
    "make_function_op_code_to_jit_function",
    "inline_inlinables",
    "find_literally",
    "literal_unroll",
    "LiteralPropagation",
    "inline_overloads",
    "nopython_rewrites",  # rewrites array expressions: kernels have none, because they allocate nothing
}


class _Lowered(JITCodeLibrary):  # type: ignore[misc]
    """A lowered function, neither optimised nor executable."""

    def add_llvm_module(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        self._final_module.link_in(ll_module)

    def finalize(self) -> None:
        self._raise_if_finalized()
        self._finalized = True

    @property
    def below(self) -> list[Any]:
        """The libraries of the functions it calls."""
        return list(self._linking_libraries)


class _Executable(JITCodeLibrary):  # type: ignore[misc]
    """A function with everything it calls, optimised once."""

    add_llvm_module = _Lowered.add_llvm_module

    def finalize(self) -> None:
        for library in self._linking_libraries:  # grows during the loop
            known = set(self._linking_libraries)
            self._linking_libraries += [each for each in getattr(library, "below", ()) if each not in known]
        super().finalize()


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerOnly(NativeLowering):  # type: ignore[misc]
    """Lower a function that only kernels call: no machine code, no wrappers."""

    _name = "lower_only"

    def run_pass(self, state: Any) -> bool:
        state.library = _Lowered(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        super().run_pass(state)
        state.library.finalize()
        known_by = object().__dir__  # callers look it up by its entry point; Numba wants a built-in function for that
        state.targetctx.insert_user_function(known_by, state.cr.fndesc, [state.library])
        state["cr"] = state.cr._replace(cfunc=known_by)
        waiting.count()
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerAndLink(NativeLowering):  # type: ignore[misc]
    """Lower a function that Python calls, link everything below it, and generate machine code."""

    _name = "lower_and_link"

    def run_pass(self, state: Any) -> bool:
        state.library = _Executable(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        state.flags.no_cfunc_wrapper = True
        waiting.count()  # before it is optimised, which takes a while
        return bool(super().run_pass(state))


class Inlined(CompilerBase):  # type: ignore[misc]
    """The compiler of kernels that are called by kernels."""

    def define_pipelines(self) -> list[PassManager]:
        """Numba's own pipeline, up to lowering."""
        return [_lowered_by(_LowerOnly, self.state)]


class Whole(CompilerBase):  # type: ignore[misc]
    """The compiler of kernels that are called from Python."""

    def __init__(self, typingctx: Any, targetctx: Any, *rest: Any) -> None:
        with less_of_the_same(typingctx):
            super().__init__(typingctx, targetctx, *rest)

    def compile_extra(self, func: Any) -> Any:
        """Compile a function and everything it calls."""
        with less_of_the_same(self.state.typingctx):
            return super().compile_extra(func)

    def define_pipelines(self) -> list[PassManager]:
        """Numba's own pipeline, with all called functions linked before optimisation."""
        return [_lowered_by(_LowerAndLink, self.state)]


def _lowered_by(lowering: type, state: Any) -> PassManager:
    """Numba's own pipeline with another lowering pass, without passes for features that our kernels never use."""
    usual = DefaultPassBuilder.define_nopython_pipeline(state)
    ours = is_ours(state.func_id.modname)
    passes = PassManager(lowering.__name__)
    for each, description in usual.passes:
        if not (ours and each.name() in _SEARCHES):
            passes.add_pass(lowering if each is NativeLowering else each, description)
        if ours and each is TranslateByteCode:
            passes.add_pass(OwnBuiltins, "max, min and int")
    passes.finalize()
    return passes
