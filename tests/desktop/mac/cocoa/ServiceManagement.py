"""SMAppService, over the stand-in."""

from __future__ import annotations

from Foundation import NSError
from standin import NSObject, world

SMAppServiceStatusNotRegistered = 0
SMAppServiceStatusEnabled = 1
SMAppServiceStatusRequiresApproval = 2
SMAppServiceStatusNotFound = 3


class SMAppService(NSObject, is_native=True):
    @classmethod
    def mainAppService(cls):
        return cls._shared()

    def status(self):
        return world().login_status

    def registerAndReturnError_(self, error):
        return self._become(SMAppServiceStatusEnabled)

    def unregisterAndReturnError_(self, error):
        return self._become(SMAppServiceStatusNotRegistered)

    @classmethod
    def openSystemSettingsLoginItems(cls):
        world().opened.append("login items")

    def _become(self, status):
        """As PyObjC gives back what is returned and what was written to the error."""
        if world().login_refusal:
            return False, NSError._saying(world().login_refusal)
        world().login_status = status
        return True, None
