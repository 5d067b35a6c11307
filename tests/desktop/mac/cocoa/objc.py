"""The parts of PyObjC's `objc` that are used, over the stand-in."""

from standin import BadPrototypeError, ObjCError, class_named

error = ObjCError
nosuchclass_error = KeyError

__all__ = ["BadPrototypeError", "error", "lookUpClass", "nosuchclass_error", "python_method", "super"]

super = super


def python_method(function):
    function.is_python_method = True
    return function


def lookUpClass(name):
    return class_named(name)
