"""Every selector and constant that we use, held against what Apple's SDK and PyObjC declare.

The stand-in's classes are checked selector by selector, and what the app calls has to be in the stand-in: a selector
that only the stand-in knows would be caught here.
"""

import ast
import importlib
from pathlib import Path

import fetched
import pytest
import sdk

ROOT = Path(__file__).parents[3]
SOURCES = sorted((ROOT / "AgtmuxBar" / "mac").glob("*.py"))
# Python's own names that look like selectors, and ours.
OWN = {"tick_"}


@pytest.fixture(scope="module")
def declared():
    try:
        return sdk.Sdk(fetched.sdk())
    except fetched.Unavailable as reason:
        pytest.skip(f"the declarations of Apple's SDK cannot be had: {reason}")


@pytest.fixture(scope="module")
def metadata():
    try:
        return sdk.constants(fetched.frameworks())
    except fetched.Unavailable as reason:
        pytest.skip(f"PyObjC's metadata cannot be had: {reason}")


def native_classes(modules):
    for name in modules:
        module = importlib.import_module(name)
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and value.__module__ in (name, "standin")
                and getattr(value, "_is_native", False)
            ):
                yield value


def selectors(value):
    return [
        name
        for name, member in vars(value).items()
        if not name.startswith("_") and (callable(member) or isinstance(member, classmethod))
    ]


def test_the_stand_in_has_no_selector_that_apple_has_not(declared, cocoa_modules):
    checked = 0
    wrong = []
    for value in {each for each in native_classes(sdk.FRAMEWORKS)}:
        assert value.__name__ in declared.classes, f"Apple has no {value.__name__}"
        for name in selectors(value):
            checked += 1
            # What the stand-in's run loop calls, and no app.
            if not declared.has(value.__name__, name) and (value.__name__, name) != ("NSTimer", "fired"):
                wrong.append(f"{value.__name__}.{name}")
    print(f"{checked} selectors checked")
    assert checked > 200
    assert not wrong


def used_selectors():
    """Name and place of everything selector-shaped that our sources call, or define for Cocoa to call."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "name", None)
            if isinstance(name, str) and name.endswith("_") and not name.startswith("_") and name not in OWN:
                yield name, f"{path.name}:{node.lineno}"


def test_every_selector_that_we_call_is_apples_and_the_stand_ins(declared, cocoa_modules):
    known = {name for value in native_classes(sdk.FRAMEWORKS) for name in selectors(value)}
    found = list(used_selectors())
    print(f"{len(found)} uses of {len({name for name, _ in found})} selectors")
    assert len(found) > 40
    assert not [f"{place}: {name}" for name, place in found if not declared.anywhere(name)]
    # What Cocoa calls is ours to define.
    callbacks = {
        "menuWillOpen_",
        "userNotificationCenter_willPresentNotification_withCompletionHandler_",
        "userNotificationCenter_didReceiveNotificationResponse_withCompletionHandler_",
    }
    assert not [f"{place}: {name}" for name, place in found if name not in known | callbacks]


def test_every_constant_is_pyobjcs_with_its_number(metadata, cocoa_modules):
    checked = 0
    for framework in sdk.FRAMEWORKS:
        module = importlib.import_module(framework)
        for name, value in vars(module).items():
            if name.startswith(("NS", "UN", "SM")) and isinstance(value, int | float):
                checked += 1
                # Written with other words in its metadata: a double.
                if name == "NSVariableStatusItemLength":
                    continue
                assert name in metadata, f"PyObjC has no {name}"
                assert metadata[name] in (value, None), f"{name} is {metadata[name]}, not {value}"
    assert checked > 25


def test_every_name_that_we_import_from_cocoa_is_there(declared, metadata, cocoa_modules):
    wrong = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module in sdk.FRAMEWORKS:
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "UN":
                names = [node.attr]
            wrong += [f"{path.name}: {name}" for name in names if name not in declared.classes and name not in metadata]
    assert not wrong


@pytest.mark.parametrize(
    ("owner", "method", "is_there"),
    [
        ("NSMenuItem", "initWithTitle_action_keyEquivalent_", True),
        ("NSMenuItem", "setTitle_", True),
        ("NSMenuItem", "isHidden", True),
        # Only to be read.
        ("NSMenuItem", "setHasSubmenu_", False),
        ("NSMenuItem", "setTittle_", False),
        ("NSMenu", "insertItem_atIndex_", True),
        ("NSMenu", "insertItem_at_", False),
        ("SMAppService", "registerAndReturnError_", True),
        ("UNUserNotificationCenter", "removeDeliveredNotificationsWithIdentifiers_", True),
        ("UNUserNotificationCenter", "removeDeliveredNotificationWithIdentifier_", False),
    ],
)
def test_the_check_bites(declared, owner, method, is_there):
    assert declared.has(owner, method) is is_there
