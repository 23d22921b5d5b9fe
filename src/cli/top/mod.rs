//! `npubbot top`: the running bot on the whole terminal, until `q`.

mod devices;
mod link;
mod model;
mod palette;
mod screen;

use super::folders::FolderFlags;
use super::operate::patiently;
use crate::control::Command;
use anyhow::bail;
use clap::Args;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use link::{Link, look};
use model::Model;
use palette::Palette;
use screen::draw;
use std::io::IsTerminal;
use std::time::Duration;

/// Longest time between two drawings of the screen.
const FRAME: Duration = Duration::from_millis(100);

/// Flags of `npubbot top`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot top                  the bot of this user
  sudo npubbot top             the bot of the service
  NO_COLOR=1 npubbot top       without colours

Keys: q quits, p pauses the search or goes on with it, up and down move through the jobs.
Exit code 3: no bot runs.")]
pub(super) struct Top {
    #[command(flatten)]
    folders: FolderFlags,
}

impl Top {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let data = self.folders.find()?.data;
        let mut model = Model::default();
        // Asked before the terminal changes: if no bot runs, an error line is enough.
        patiently(|| look(&data, &mut model))?;
        if !std::io::stdout().is_terminal() {
            bail!("`top` needs a terminal; `npubbot status` prints to files and pipes");
        }
        let mut link = Link::start(data)?;
        let mut terminal = ratatui::try_init()?;
        let watched = watch(&mut terminal, &mut link, &mut model);
        ratatui::try_restore()?;
        watched
    }
}

/// Shows the bot until a key ends it. A bot that stops or hangs is waited for.
fn watch(terminal: &mut ratatui::DefaultTerminal, link: &mut Link, model: &mut Model) -> anyhow::Result<()> {
    let palette = Palette::of_environment();
    let mut is_changed = true;
    loop {
        // Draws only after a change, because the connection may be slow.
        if link.turn(model, std::time::Instant::now()) || is_changed {
            terminal.draw(|frame| draw(frame, model, palette))?;
        }
        is_changed = event::poll(FRAME)?;
        if !is_changed {
            continue;
        }
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
                KeyCode::Char('p') => {
                    link.request(if model.is_paused() { Command::Resume } else { Command::Pause });
                }
                KeyCode::Up => model.scroll(-1),
                KeyCode::Down => model.scroll(1),
                KeyCode::PageUp => model.scroll(-10),
                KeyCode::PageDown => model.scroll(10),
                _ => {}
            },
            // After a change of the terminal's size, everything is drawn again.
            _ => {}
        }
    }
}
