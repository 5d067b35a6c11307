"""Whether the app starts when its user logs in: asked of macOS, which shows it in System Settings too."""

from __future__ import annotations

from ServiceManagement import (
    SMAppService,
    SMAppServiceStatusEnabled,
    SMAppServiceStatusRequiresApproval,
)

from agtmux.domain.errors import AgtmuxError, ErrorCode
from AgtmuxBar.mac.bundle import Bundle, require_settled


def is_on() -> bool:
    return bool(SMAppService.mainAppService().status() == SMAppServiceStatusEnabled)


def turn(on: bool, bundle: Bundle) -> None:
    require_settled(bundle)
    service = SMAppService.mainAppService()
    done, error = service.registerAndReturnError_(None) if on else service.unregisterAndReturnError_(None)
    if not done:
        reason = error.localizedDescription() if error is not None else "macOS gave no reason"
        raise AgtmuxError(ErrorCode.INTERNAL, f"the login item could not be changed: {reason}")
    if on and service.status() == SMAppServiceStatusRequiresApproval:
        SMAppService.openSystemSettingsLoginItems()
        raise AgtmuxError(
            ErrorCode.UNSUPPORTED, "allow AgtmuxBar under Login Items in System Settings, which are open now"
        )
