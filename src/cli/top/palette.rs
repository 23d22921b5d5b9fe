//! The colours of `npubbot top`.

use ratatui::style::{Color, Modifier, Style};

/// The colours of the screen; none if `NO_COLOR` is set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Palette {
    /// Whether colours are used.
    pub has_colors: bool,
}

impl Palette {
    /// Reads `NO_COLOR` from the environment.
    pub fn of_environment() -> Palette {
        Palette { has_colors: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
    }

    /// The style of a text in this colour, or plain without colours.
    pub fn color(self, color: Color) -> Style {
        if self.has_colors { Style::new().fg(color) } else { Style::new() }
    }

    /// The style of a good state.
    pub fn good(self) -> Style {
        self.color(Color::Green)
    }

    /// The style of a state that needs attention. Without colours it is bold.
    pub fn bad(self) -> Style {
        self.color(Color::Red).add_modifier(Modifier::BOLD)
    }
}
