//! `npubbot top`: the running bot on the whole terminal, until `q`.

mod model;
mod screen;

use super::folders::FolderFlags;
use crate::control::{self, Command, ControlError, Reply};
use anyhow::bail;
use clap::Args;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use model::Model;
use screen::{Palette, draw};
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two looks at the bot.
const EVERY: Duration = Duration::from_secs(1);

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
        // Where no bot runs the terminal stays as it is.
        look(&data, &mut model)?;
        if !std::io::stdout().is_terminal() {
            bail!("`top` needs a terminal; `npubbot status` prints to files and pipes");
        }
        let mut terminal = ratatui::try_init()?;
        let watched = watch(&mut terminal, &data, &mut model);
        ratatui::try_restore()?;
        watched
    }
}

/// Shows the bot until a key ends it. A bot that stops is waited for.
fn watch(terminal: &mut ratatui::DefaultTerminal, data: &Path, model: &mut Model) -> anyhow::Result<()> {
    let palette = Palette::of_environment();
    let mut next = Instant::now() + EVERY;
    loop {
        terminal.draw(|frame| draw(frame, model, palette))?;
        if event::poll(next.saturating_duration_since(Instant::now()))? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match key.code {
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
                    KeyCode::Char('p') => {
                        let command = if model.is_paused() { Command::Resume } else { Command::Pause };
                        if let Err(error) = control::ask(data, command, |_| ()) {
                            model.fail(error.to_string());
                        }
                        next = Instant::now();
                    }
                    KeyCode::Up => model.scroll(-1),
                    KeyCode::Down => model.scroll(1),
                    KeyCode::PageUp => model.scroll(-10),
                    KeyCode::PageDown => model.scroll(10),
                    _ => {}
                },
                // The terminal has another size: it is drawn again.
                _ => {}
            }
        }
        if Instant::now() >= next {
            if let Err(error) = look(data, model) {
                model.fail(error.to_string());
            }
            next = Instant::now() + EVERY;
        }
    }
}

/// Asks the bot for its state.
fn look(data: &Path, model: &mut Model) -> Result<(), ControlError> {
    control::ask(data, Command::View, |reply| match reply {
        Reply::View(view) => model.take(*view, Instant::now()),
        Reply::Refused(reason) => model.fail(reason),
        _ => {}
    })
}
