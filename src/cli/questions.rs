//! Questions on a terminal.

use super::output::{note, write_note};
use anyhow::bail;
use std::io::BufRead;

/// Asks for a line. An empty answer is `default`.
///
/// Errors: standard input ends.
pub(super) fn ask(question: &str, default: &str) -> anyhow::Result<String> {
    ask_until(question, default, |answer| Ok(answer.to_owned()))
}

/// Asks until `read` accepts the answer. If `read` refuses one, its reason is shown.
///
/// Errors: standard input ends.
pub(super) fn ask_until<T>(
    question: &str,
    default: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> anyhow::Result<T> {
    ask_in(&mut std::io::stdin().lock(), question, default, read)
}

fn ask_in<T>(
    input: &mut impl BufRead,
    question: &str,
    default: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> anyhow::Result<T> {
    loop {
        write_note(format_args!("{question} [{default}]: "));
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            bail!("the answers ended before the questions; nothing was written");
        }
        let answer = line.trim();
        match read(if answer.is_empty() { default } else { answer }) {
            Ok(value) => return Ok(value),
            Err(reason) => note!("{reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_asked_until_the_answer_fits() {
        let number = |answer: &str| answer.parse::<u32>().map_err(|error| error.to_string());
        let ask = |typed: &str| ask_in(&mut typed.as_bytes(), "How many", "3", number);
        assert_eq!(ask("\n").unwrap(), 3);
        assert_eq!(ask("many\n 7 \n").unwrap(), 7);
        assert!(ask("many\n").unwrap_err().to_string().contains("nothing was written"));
    }
}
