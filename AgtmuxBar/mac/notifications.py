"""Notifications with buttons, where macOS lets us: UNUserNotificationCenter, in a signed bundle. Elsewhere osascript's,
which have none and stay until they are read; the first of those says so.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Thread
from typing import Any, Final

import UserNotifications as UN
from Foundation import NSBundle, NSObject, NSSet
from PyObjCTools import AppHelper

from AgtmuxBar.mac import spawn
from AgtmuxBar.mac.menu import encodable
from AgtmuxBar.notify import Notification
from AgtmuxBar.tree import Action

_log = logging.getLogger(__name__)

# By the name of what a button does. Attach brings a terminal to the front; nobody approves on a locked screen.
_OPTIONS: Final = {
    "attach": UN.UNNotificationActionOptionForeground,
    "approve": UN.UNNotificationActionOptionAuthenticationRequired,
    "deny": UN.UNNotificationActionOptionDestructive,
}
_DEFAULT: Final = "default"
_SCRIPT: Final = """\
on run argv
    display notification (item 3 of argv) with title (item 1 of argv) subtitle (item 2 of argv)
end run
"""
_PLAIN: Final = "(Without buttons: macOS lets only a signed AgtmuxBar.app show them.)"


class Notifier:
    """For the main thread, like everything that calls it."""

    def __init__(self, choose: Callable[[Action], object], osascript: str = "/usr/bin/osascript") -> None:
        self._osascript = osascript
        self._center: Any = None
        self._delegate: Any = None
        self._choose = choose
        self._categories: dict[str, Any] = {}
        # Decided by the system, a moment after the start: what comes before that waits here, by key.
        self._early: dict[str, Notification] | None = {}
        # Silent ones, for as long as it is being asked whether what they replace is still there.
        self._renewals: dict[str, Notification] = {}
        self._is_plain = False
        self._is_refused = False
        self._has_explained = False

    def start(self, left: Callable[[Mapping[str, str]], object] = lambda _: None) -> None:
        """`left` gets what is on display from before: the dialog by the key."""
        # Outside a bundle, asking for the centre ends the process.
        if not NSBundle.mainBundle().bundleIdentifier():
            self._settle(is_plain=True)
            return
        self._center = UN.UNUserNotificationCenter.currentNotificationCenter()
        self._delegate = _Delegate.alloc().init()
        self._delegate.choose = self._choose
        # Before the launch is over: the app may have been started by a button of an old notification.
        self._center.setDelegate_(self._delegate)
        self._find(left)
        self._center.requestAuthorizationWithOptions_completionHandler_(
            UN.UNAuthorizationOptionAlert | UN.UNAuthorizationOptionSound, self._authorised
        )

    def show(self, notification: Notification) -> None:
        self._renewals.pop(notification.key, None)
        if self._early is not None:
            earlier = self._early.get(notification.key)
            is_silent = notification.is_silent and (earlier is None or earlier.is_silent)
            self._early[notification.key] = replace(notification, is_silent=is_silent)
        elif self._is_plain:
            self._show_plainly(notification)
        elif self._is_refused:
            return
        elif notification.is_silent:
            self._renewals[notification.key] = notification
            self._find(lambda delivered: self._renew(notification, delivered))
        else:
            self._show(notification)

    def withdraw(self, key: str) -> None:
        self._renewals.pop(key, None)
        if self._early is not None:
            self._early.pop(key, None)
        if self._center is not None:
            self._center.removePendingNotificationRequestsWithIdentifiers_([encodable(key)])
            self._center.removeDeliveredNotificationsWithIdentifiers_([encodable(key)])

    def withdraw_all(self) -> None:
        self._renewals.clear()
        if self._early is not None:
            self._early.clear()
        if self._center is not None:
            self._center.removeAllDeliveredNotifications()

    def _authorised(self, granted: bool, error: Any) -> None:
        # On a thread of the system's, like every handler here.
        if granted:
            AppHelper.callAfter(self._settle)
            return
        reason = error.localizedDescription() if error is not None else "the user said no"
        _log.warning("notifications are not allowed: %s", reason)

        # The same error stands for a user's no and for an app that is not signed; the settings tell them apart.
        def told(settings: Any) -> None:
            denied = settings.authorizationStatus() == UN.UNAuthorizationStatusDenied
            AppHelper.callAfter(self._settle, is_plain=not denied, is_refused=denied)

        self._center.getNotificationSettingsWithCompletionHandler_(told)

    def _settle(self, *, is_plain: bool = False, is_refused: bool = False) -> None:
        self._is_plain, self._is_refused = is_plain, is_refused
        early, self._early = self._early or {}, None
        for notification in early.values():
            self.show(notification)

    def _find(self, take: Callable[[Mapping[str, str]], object]) -> None:
        """Have what is on display taken on the main thread: the dialog by the key."""

        def found(delivered: Any) -> None:
            requests = [each.request() for each in delivered]
            dialogs = {str(each.identifier()): _dialog(each.content().userInfo()) for each in requests}
            AppHelper.callAfter(take, dialogs)

        self._center.getDeliveredNotificationsWithCompletionHandler_(found)

    def _renew(self, notification: Notification, delivered: Mapping[str, str]) -> None:
        if self._renewals.get(notification.key) is not notification:
            # It has been withdrawn, or become something else.
            return
        del self._renewals[notification.key]
        # One that the user has put away does not come back because its buttons mean something else by now.
        if encodable(notification.key) in delivered:
            self._show(notification)

    def _show(self, notification: Notification) -> None:
        content = UN.UNMutableNotificationContent.alloc().init()
        content.setTitle_(encodable(notification.title))
        content.setSubtitle_(encodable(notification.place))
        content.setBody_(encodable(notification.body))
        content.setThreadIdentifier_(encodable(notification.place))
        content.setCategoryIdentifier_(self._category(notification))
        # What its buttons do goes with it, so that they still do it when the app has been started anew.
        content.setUserInfo_({"actions": json.dumps(_actions(notification))})
        if notification.is_silent:
            # In the list, in the place of the one before it, and not on the screen again.
            content.setInterruptionLevel_(UN.UNNotificationInterruptionLevelPassive)
        elif notification.has_sound:
            content.setSound_(UN.UNNotificationSound.defaultSound())
        request = UN.UNNotificationRequest.requestWithIdentifier_content_trigger_(
            encodable(notification.key), content, None
        )
        self._center.addNotificationRequest_withCompletionHandler_(request, _added)

    def _category(self, notification: Notification) -> str:
        """The buttons' own: macOS knows them by a name that was told before."""
        names = [action.name for _, action in notification.buttons]
        identifier = " ".join(names) or "none"
        if identifier not in self._categories:
            actions = [
                UN.UNNotificationAction.actionWithIdentifier_title_options_(name, label, _OPTIONS.get(name, 0))
                for name, (label, _) in zip(names, notification.buttons, strict=True)
            ]
            self._categories[identifier] = (
                UN.UNNotificationCategory.categoryWithIdentifier_actions_intentIdentifiers_options_(
                    identifier, actions, [], UN.UNNotificationCategoryOptionNone
                )
            )
            self._center.setNotificationCategories_(NSSet.setWithArray_(list(self._categories.values())))
        return identifier

    def _show_plainly(self, notification: Notification) -> None:
        if notification.is_silent:
            # Only its buttons differ, and these have none.
            return
        body = notification.body
        if not self._has_explained:
            self._has_explained = True
            body = f"{body}\n{_PLAIN}"
        words = [encodable(text).replace("\0", "") for text in (notification.title, notification.place, body)]
        # osascript takes a tenth of a second and more, which the menu does not wait for.
        Thread(target=_tell, args=([self._osascript, "-", *words],), name="osascript", daemon=True).start()


class _Delegate(NSObject):
    def userNotificationCenter_willPresentNotification_withCompletionHandler_(
        self, center: Any, notification: Any, handler: Any
    ) -> None:
        # Also while we are in front, where macOS would show none.
        sound = UN.UNNotificationPresentationOptionSound if notification.request().content().sound() else 0
        handler(UN.UNNotificationPresentationOptionBanner | UN.UNNotificationPresentationOptionList | sound)

    def userNotificationCenter_didReceiveNotificationResponse_withCompletionHandler_(
        self, center: Any, response: Any, handler: Any
    ) -> None:
        try:
            chosen = _chosen(str(response.actionIdentifier()), response.notification().request().content().userInfo())
            if chosen is not None:
                AppHelper.callAfter(self.choose, chosen)
        finally:
            # macOS waits for it, and takes the app for hung without.
            handler()


def _actions(notification: Notification) -> dict[str, list[object]]:
    found = {action.name: action for _, action in notification.buttons} | {_DEFAULT: notification.default}
    return {name: [action.name, dict(action.parameters)] for name, action in found.items()}


def _chosen(identifier: str, info: Any) -> Action | None:
    if identifier == UN.UNNotificationDismissActionIdentifier:
        return None
    name = _DEFAULT if identifier == UN.UNNotificationDefaultActionIdentifier else identifier
    if (action := _action(name, info)) is None:
        _log.warning("a notification of another version was chosen: %s", identifier)
    return action


def _action(name: str, info: Any) -> Action | None:
    try:
        action, parameters = json.loads(str(info["actions"]))[name]
        return Action(str(action), {str(key): str(value) for key, value in parameters.items()})
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


def _dialog(info: Any) -> str:
    """The fingerprint of the one that a notification is of; empty where it is of none, or of another version."""
    action = _action(_DEFAULT, info)
    return "" if action is None else action.parameters.get("fingerprint", "")


def _added(error: Any) -> None:
    if error is not None:
        _log.warning("a notification was not shown: %s", error.localizedDescription())


def _tell(argv: list[str]) -> None:
    try:
        # By standard input and arguments: no text of an agent's is ever part of a script.
        spawn.checked(argv, _SCRIPT)
    except OSError as error:
        _log.warning("a notification was not shown: %s", error)
