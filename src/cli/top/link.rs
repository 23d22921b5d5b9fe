//! The bot's answers, fetched by a separate thread, so that keys work while the bot hangs.

use super::model::Model;
use crate::control::{self, Command, Reply, View};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Time between two looks at the bot.
const EVERY: Duration = Duration::from_secs(1);
/// If an answer takes longer, the screen says that the bot hangs or is busy.
const SLOW: Duration = Duration::from_secs(3);

/// The outcome of a request: a view of the bot, `None` for a request that asks for no view, or the
/// reason why there is no answer.
type Answer = Result<Option<Box<View>>, String>;

/// The thread that asks the bot, and its present request.
#[derive(Debug)]
pub(super) struct Link {
    commands: Sender<Command>,
    answers: Receiver<Answer>,
    /// Time at which the request under way was sent.
    asked: Option<Instant>,
    /// A command that waits for its turn, other than the request for the state.
    next: Option<Command>,
    /// Time at which the state is asked for next.
    due: Instant,
}

impl Link {
    /// Starts the thread. It ends with the program, or once the link is dropped.
    pub fn start(data: PathBuf) -> std::io::Result<Link> {
        Link::with(move |command| ask(&data, command))
    }

    fn with(ask: impl Fn(Command) -> Answer + Send + 'static) -> std::io::Result<Link> {
        let (commands, requests) = channel::<Command>();
        let (sender, answers) = channel();
        let serve = move || requests.iter().map(ask).try_for_each(|answer| sender.send(answer));
        std::thread::Builder::new().name("link".to_owned()).spawn(serve)?;
        Ok(Link { commands, answers, asked: None, next: None, due: Instant::now() + EVERY })
    }

    /// Asks the bot to carry out `command` after the present request. A later call replaces a
    /// waiting command.
    pub fn request(&mut self, command: Command) {
        self.next = Some(command);
    }

    /// Gives new answers to the model, and sends the next request if it is due at `now`. Returns
    /// whether the model changed.
    pub fn turn(&mut self, model: &mut Model, now: Instant) -> bool {
        let mut is_changed = true;
        match self.answers.try_recv() {
            Ok(answer) => {
                self.asked = None;
                match answer {
                    Ok(Some(view)) => {
                        model.take(*view, now);
                        self.due = now + EVERY;
                    }
                    Ok(None) => self.due = now,
                    Err(reason) => {
                        model.fail(reason);
                        self.due = now + EVERY;
                    }
                }
            }
            Err(TryRecvError::Empty) => is_changed = false,
            Err(TryRecvError::Disconnected) => model.fail("this program failed; start it again".to_owned()),
        }
        match self.asked {
            Some(asked) => {
                let waited = now.saturating_duration_since(asked);
                if waited >= SLOW {
                    let seconds = waited.as_secs();
                    model.fail(format!("the bot has not answered for {seconds} seconds; it hangs or is very busy"));
                    is_changed = true;
                }
            }
            None if self.next.is_some() || now >= self.due => {
                let command = self.next.take().unwrap_or(Command::View);
                if self.commands.send(command).is_ok() {
                    self.asked = Some(now);
                }
            }
            None => {}
        }
        is_changed
    }
}

/// Asks the bot of a data folder.
fn ask(data: &std::path::Path, command: Command) -> Answer {
    let (mut view, mut refused) = (None, None);
    let asked = control::ask(data, command, |reply| match reply {
        Reply::View(found) => view = Some(found),
        Reply::Refused(reason) => refused = Some(reason),
        _ => {}
    });
    match (asked, refused) {
        (Err(error), _) => Err(error.to_string()),
        (Ok(()), Some(reason)) => Err(reason),
        (Ok(()), None) => Ok(view),
    }
}

/// Asks the bot for its state, once.
///
/// Errors: no bot runs, or it does not answer.
pub(super) fn look(data: &std::path::Path, model: &mut Model) -> Result<(), control::ControlError> {
    control::ask(data, Command::View, |reply| match reply {
        Reply::View(view) => model.take(*view, Instant::now()),
        Reply::Refused(reason) => model.fail(reason),
        _ => {}
    })
}

#[cfg(test)]
mod tests {
    use super::super::screen::tests::view;
    use super::*;

    /// Runs turns of the link until the model is as wanted. Each turn is given a time one second
    /// later.
    fn turn_until(link: &mut Link, model: &mut Model, is_done: impl Fn(&Model) -> bool) {
        let began = Instant::now();
        let mut now = began;
        while !is_done(model) {
            assert!(began.elapsed() < Duration::from_secs(60), "{model:?}");
            link.turn(model, now);
            now += Duration::from_secs(1);
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_bot_that_does_not_answer_is_named_and_a_later_answer_counts() {
        let (answer, hanging) = channel::<()>();
        let hanging = std::sync::Mutex::new(hanging);
        let mut link = Link::with(move |_| {
            let _ = hanging.lock().unwrap().recv();
            Ok(Some(Box::new(view())))
        })
        .unwrap();
        let mut model = Model::default();
        turn_until(&mut link, &mut model, |model| model.trouble.is_some());
        assert!(model.trouble.as_deref().unwrap().contains("has not answered for 3 seconds"), "{model:?}");
        answer.send(()).unwrap();
        turn_until(&mut link, &mut model, |model| model.trouble.is_none());
        assert!(model.view.is_some());
    }

    #[test]
    fn a_request_comes_before_the_next_look() {
        let (sender, commands) = channel();
        let sender = std::sync::Mutex::new(sender);
        let mut link = Link::with(move |command| {
            sender.lock().unwrap().send(command.clone()).unwrap();
            Ok((command == Command::View).then(|| Box::new(view())))
        })
        .unwrap();
        link.request(Command::Pause);
        let mut model = Model::default();
        turn_until(&mut link, &mut model, |model| model.view.is_some());
        assert_eq!(commands.try_iter().collect::<Vec<_>>(), [Command::Pause, Command::View]);
    }
}
