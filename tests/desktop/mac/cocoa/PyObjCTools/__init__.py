"""The part of PyObjCTools that is used, over the stand-in."""
