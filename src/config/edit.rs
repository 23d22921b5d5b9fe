//! The text of a new configuration: the shipped file, with an operator's choices in it.

use toml_edit::{Array, DocumentMut, Item, Value};

/// The configuration file that ships with npubbot: every key with its default.
pub(super) const SHIPPED: &str = include_str!("../../relays.toml");

/// An operator's choices for a new configuration. Everything else keeps its default.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// The bot's name.
    pub name: Option<String>,
    /// Relays where askers write to the bot. Empty: the shipped ones.
    pub relays: Vec<String>,
    /// The devices that search: `all`, `cpu`, `cuda` or `cuda:N`.
    pub device: Option<String>,
    /// Whether to publish the live status and the daily note.
    pub status: Option<bool>,
}

impl Choices {
    /// The configuration's text, with the comments of the shipped file. It is not checked yet.
    pub(super) fn text(&self) -> String {
        // A test reads the shipped file, so this succeeds.
        let Ok(mut file) = SHIPPED.parse::<DocumentMut>() else { return SHIPPED.to_owned() };
        if let Some(name) = &self.name {
            set(&mut file["bot"]["name"], name);
        }
        if let Some(device) = &self.device {
            set(&mut file["search"]["device"], device);
        }
        if let Some(status) = self.status {
            set(&mut file["bot"]["live_status"], status);
            set(&mut file["bot"]["daily_note"], status);
        }
        if !self.relays.is_empty() {
            self.set_relays(&mut file);
        }
        file.to_string()
    }

    /// Replaces the relays with the role `inbox`. Other relays stay, because they help to find
    /// askers' relay lists.
    fn set_relays(&self, file: &mut DocumentMut) {
        let Some(tables) = file["relays"].as_array_of_tables_mut() else { return };
        let is_inbox = |role: &Value| role.as_str() == Some("inbox");
        let (mut inboxes, mut others) = (Vec::new(), Vec::new());
        for table in tables.iter() {
            let roles = table["roles"].as_array().map(Array::iter).into_iter().flatten();
            if roles.into_iter().any(is_inbox) { inboxes.push(table.clone()) } else { others.push(table.clone()) }
        }
        let Some(first) = inboxes.into_iter().next() else { return };
        tables.clear();
        for url in &self.relays {
            let mut table = first.clone();
            set(&mut table["url"], url);
            tables.push(table);
        }
        others.into_iter().for_each(|table| tables.push(table));
    }
}

/// Replaces a value and keeps the space and comments around it.
fn set(item: &mut Item, value: impl Into<Value>) {
    let mut value = value.into();
    if let Some(old) = item.as_value() {
        *value.decor_mut() = old.decor().clone();
    }
    *item = Item::Value(value);
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;
    use crate::search::DeviceChoice;

    #[test]
    fn without_choices_the_text_is_the_shipped_file() {
        assert_eq!(Choices::default().text(), SHIPPED);
    }

    #[test]
    fn choices_are_in_the_file_and_its_comments_stay() {
        let choices = Choices {
            name: Some("Ann's \"bot\" \\o/".to_owned()),
            relays: vec!["wss://one.example".to_owned(), "wss://two.example".to_owned()],
            device: Some("cuda:1".to_owned()),
            status: Some(false),
        };
        let text = choices.text();
        let config = Config::parse(&text, "").unwrap();
        let inboxes: Vec<String> =
            config.relays.iter().filter(|relay| relay.inbox).map(|relay| relay.url.to_string()).collect();
        assert_eq!(inboxes, ["wss://one.example", "wss://two.example"]);
        assert!(config.relays.iter().any(|relay| !relay.inbox && relay.discovery), "others help to find relay lists");
        assert_eq!(config.bot.name, "Ann's \"bot\" \\o/");
        assert_eq!(config.search.devices, DeviceChoice::CudaOrdinal(1));
        assert!(!config.bot.live_status && !config.bot.daily_note);
        let comments =
            |text: &str| text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(comments(&text), comments(SHIPPED));
    }

    #[test]
    fn a_relay_that_is_none_is_refused_and_nothing_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/relays.toml");
        let wrong = Choices { relays: vec!["https://one.example".to_owned()], ..Choices::default() };
        let error = Config::write_new(&file, &wrong).unwrap_err().to_string();
        assert!(error.contains("wss://relay.example") && !file.exists(), "{error}");
    }
}
