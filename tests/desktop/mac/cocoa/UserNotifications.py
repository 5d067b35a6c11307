"""UserNotifications, over the stand-in. Handlers are called on a thread of the system's, as Apple says they may be."""

from __future__ import annotations

import threading

from Foundation import NSError
from standin import NSObject, world

UNAuthorizationOptionSound = 2
UNAuthorizationOptionAlert = 4
UNAuthorizationStatusNotDetermined = 0
UNAuthorizationStatusDenied = 1
UNAuthorizationStatusAuthorized = 2
UNNotificationActionOptionAuthenticationRequired = 1
UNNotificationActionOptionDestructive = 2
UNNotificationActionOptionForeground = 4
UNNotificationCategoryOptionNone = 0
UNNotificationPresentationOptionSound = 2
UNNotificationPresentationOptionList = 8
UNNotificationPresentationOptionBanner = 16
UNNotificationDefaultActionIdentifier = "com.apple.UNNotificationDefaultActionIdentifier"
UNNotificationDismissActionIdentifier = "com.apple.UNNotificationDismissActionIdentifier"
UNNotificationInterruptionLevelPassive = 0

_NOT_ALLOWED = "Notifications are not allowed for this application"


def _elsewhere(handler, *arguments):
    if handler is None:
        return
    failed = []

    def call():
        try:
            handler(*arguments)
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=call, name="com.apple.usernotifications")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


class UNNotificationSound(NSObject, is_native=True):
    @classmethod
    def defaultSound(cls):
        return cls._shared()


class UNMutableNotificationContent(
    NSObject,
    is_native=True,
    properties="title subtitle body sound categoryIdentifier threadIdentifier userInfo interruptionLevel",
):
    pass


class UNNotificationAction(NSObject, is_native=True, properties="identifier! title! options!"):
    @classmethod
    def actionWithIdentifier_title_options_(cls, identifier, title, options):
        made = cls.alloc().init()
        made._values.update(identifier=identifier, title=title, options=options)
        return made


class UNNotificationCategory(NSObject, is_native=True, properties="identifier! actions!"):
    @classmethod
    def categoryWithIdentifier_actions_intentIdentifiers_options_(cls, identifier, actions, intents, options):
        made = cls.alloc().init()
        made._values.update(identifier=identifier, actions=list(actions))
        return made


class UNNotificationRequest(NSObject, is_native=True, properties="identifier! content! trigger!"):
    @classmethod
    def requestWithIdentifier_content_trigger_(cls, identifier, content, trigger):
        made = cls.alloc().init()
        made._values.update(identifier=identifier, content=content, trigger=trigger)
        return made


class UNNotification(NSObject, is_native=True, properties="request!"):
    pass


class UNNotificationResponse(NSObject, is_native=True, properties="notification! actionIdentifier!"):
    pass


class UNNotificationSettings(NSObject, is_native=True, properties="authorizationStatus!"):
    pass


class UNUserNotificationCenter(NSObject, is_native=True, weak="delegate"):
    @classmethod
    def currentNotificationCenter(cls):
        if not world().bundle_identifier:
            # A Mac ends the process here.
            raise world().offend("bundleProxyForCurrentProcess is nil")
        made = cls._shared()
        made._values.setdefault("delivered", {})
        made._values.setdefault("status", UNAuthorizationStatusNotDetermined)
        return made

    def setNotificationCategories_(self, categories):
        if not isinstance(categories, frozenset):
            raise world().offend("the categories are no NSSet", "NSInvalidArgumentException")
        self._values["categories"] = {each.identifier(): each for each in categories}

    def requestAuthorizationWithOptions_completionHandler_(self, options, handler):
        w = world()
        allowed = w.may_notify and w.is_signed
        if w.is_signed:
            self._values["status"] = UNAuthorizationStatusAuthorized if allowed else UNAuthorizationStatusDenied
        # The same for a user's no and for an app that is not signed.
        _elsewhere(handler, allowed, None if allowed else NSError._saying(_NOT_ALLOWED))

    def getNotificationSettingsWithCompletionHandler_(self, handler):
        made = UNNotificationSettings.alloc().init()
        made._values["authorizationStatus"] = self._values["status"]
        _elsewhere(handler, made)

    def addNotificationRequest_withCompletionHandler_(self, request, handler):
        allowed = self._values["status"] == UNAuthorizationStatusAuthorized
        if allowed:
            self._values["delivered"][request.identifier()] = request
        _elsewhere(handler, None if allowed else NSError._saying(_NOT_ALLOWED))

    def getDeliveredNotificationsWithCompletionHandler_(self, handler):
        found = []
        for request in self._values["delivered"].values():
            found.append(UNNotification.alloc().init())
            found[-1]._values["request"] = request
        _elsewhere(handler, found)

    def removeDeliveredNotificationsWithIdentifiers_(self, identifiers):
        for each in identifiers:
            self._values["delivered"].pop(each, None)

    def removePendingNotificationRequestsWithIdentifiers_(self, identifiers):
        pass

    def removeAllDeliveredNotifications(self):
        self._values["delivered"].clear()


def presses(center, identifier, action):
    """The user chooses one of a delivered notification's buttons, or the notification itself."""
    request = center._values["delivered"].pop(identifier)
    category = center._values["categories"][request.content().categoryIdentifier()]
    known = [each.identifier() for each in category.actions()]
    assert action in known or action.startswith("com.apple."), f"{action} is not among {known}"
    notification = UNNotification.alloc().init()
    notification._values["request"] = request
    response = UNNotificationResponse.alloc().init()
    response._values.update(notification=notification, actionIdentifier=action)
    called = []
    delegate = center.delegate()
    _elsewhere(
        delegate.userNotificationCenter_didReceiveNotificationResponse_withCompletionHandler_,
        center,
        response,
        lambda: called.append(True),
    )
    assert called == [True], "the completion handler is to be called exactly once"
