//! The colours of `npubbot top`.

use ratatui::style::{Color, Modifier, Style};

/// The colours: none if `NO_COLOR` is set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Palette {
    /// Whether there are any.
    pub has_colors: bool,
}

impl Palette {
    /// Reads `NO_COLOR` from the environment.
    pub fn of_environment() -> Palette {
        Palette { has_colors: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
    }

    /// Text of a colour, if there are any.
    pub fn color(self, color: Color) -> Style {
        if self.has_colors { Style::new().fg(color) } else { Style::new() }
    }

    /// Something as it should be.
    pub fn good(self) -> Style {
        self.color(Color::Green)
    }

    /// Something that needs a look. Without colours it is bold.
    pub fn bad(self) -> Style {
        self.color(Color::Red).add_modifier(Modifier::BOLD)
    }
}
