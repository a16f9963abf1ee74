"""The metadata of one setting."""

from dataclasses import dataclass

from cuepost.settings.kinds import SettingType


@dataclass(frozen=True, slots=True)
class Setting:
    """`default` is written as in the environment; None if it is derived from other settings."""

    kind: SettingType
    default: str | None
    meaning: str
    default_in_words: str = ""

    @property
    def shown_default(self) -> str:
        return self.default_in_words or (f"`{self.default}`" if self.default else "empty")
