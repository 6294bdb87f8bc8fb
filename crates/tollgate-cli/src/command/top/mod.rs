//! `tollgate top`: limits, rates, refusals and top keys of a running node, live in a terminal.

mod figures;
mod screen;
#[cfg(unix)]
mod terminal;

use super::admin::{AdminResponse, Client, ClientError, Target};
use super::{FAILED, Stop, print, word};
use clap::ValueEnum;
use figures::{Figures, Rates};
use screen::{Screen, SortBy, View};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// Watch limits, rates and top keys in a terminal
///
/// Shows the rates of a running node, its top keys, store and leases, from its admin API. Keys: `q`
/// quits; `r`, `a`, `s`, `f` and `n` sort by refused, admitted, shadow-refused, failure policy and
/// name; `k` changes the ranking of keys; `w` changes the window; `/` filters by the name of a
/// limit or a key, and Escape ends the filter.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Top {
    #[command(flatten)]
    target: Target,

    /// Rank keys by units: refused, admitted, near the limit (above 80 %) or shadow-refused
    #[arg(long, value_enum, default_value_t = Measure::Refused)]
    by: Measure,

    /// Keys of the last minute or hour
    #[arg(long, value_enum, default_value_t = Window::Minute)]
    window: Window,

    /// Keys of all nodes of the store, up to ten seconds old; rates stay those of one node
    #[arg(long)]
    fleet: bool,

    /// Only limits and keys with this text in their name
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,

    /// Print one screen, and exit
    #[arg(long)]
    once: bool,

    /// The output format of `--once`
    #[arg(long, value_enum, default_value_t = TopFormat::Text)]
    format: TopFormat,
}

const EXAMPLES: &str = "\
Examples:
  tollgate top
  tollgate top --by near --window 1h
  tollgate top --fleet
  tollgate top --once --format json";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TopFormat {
    /// Tables, for people
    Text,
    /// One JSON object
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Measure {
    Refused,
    Admitted,
    Near,
    Shadow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Window {
    #[value(name = "1m")]
    Minute,
    #[value(name = "1h")]
    Hour,
}

impl Measure {
    fn next(self) -> Self {
        let all = Self::value_variants();
        all[(self as usize + 1) % all.len()]
    }
}

impl Window {
    const fn other(self) -> Self {
        match self {
            Self::Minute => Self::Hour,
            Self::Hour => Self::Minute,
        }
    }
}

impl Top {
    pub(crate) fn run(&self) -> Result<ExitCode, Stop> {
        let client = self.target.client()?;
        if self.once { self.print_once(&client) } else { self.watch(&client) }
    }

    fn view(&self) -> View {
        View {
            by: self.by,
            window: self.window,
            is_fleet: self.fleet,
            sort: SortBy::Refused,
            filter: self.filter.clone(),
            is_typing: false,
        }
    }

    /// Prints one screen, with rates measured over one second.
    fn print_once(&self, client: &Client) -> Result<ExitCode, Stop> {
        let read = client.runtime()?.block_on(async {
            let mut events = client.events("/v1/live").await?;
            let mut seen: Vec<Figures> = Vec::new();
            while seen.len() < 2 {
                let Some(event) = events.next().await? else {
                    return Err(ClientError::Ended(client.authority().to_owned()));
                };
                if event.name == "figures" {
                    seen.push(Figures::new(event.data));
                }
            }
            let rates = Rates::between(&seen[0], &seen[1]);
            let top = client.call_async("GET", &top_path(&self.view()), None).await?;
            Ok::<_, ClientError>((seen.swap_remove(1), rates, top))
        });
        let (figures, rates, top) = read?;
        if top.status != 200 {
            eprintln!("tollgate: {}", top.json()["detail"].as_str().unwrap_or("no top keys"));
            return Ok(ExitCode::from(FAILED));
        }
        let text = match self.format {
            TopFormat::Json => {
                let all = json!({
                    "figures": figures.data, "rates": rates.to_json(), "top": top.json(),
                });
                format!("{all}\n")
            }
            TopFormat::Text => {
                let (view, top) = (self.view(), top.json());
                let authority = client.authority();
                let screen =
                    Screen { authority, view: &view, figures: &figures, rates: &rates, top: &top };
                let lines = screen.lines(80, usize::MAX);
                lines.iter().map(|line| format!("{line}\n")).collect()
            }
        };
        print(text, 0)
    }

    #[cfg(not(unix))]
    fn watch(&self, client: &Client) -> Result<ExitCode, Stop> {
        self.print_once(client)
    }

    /// Shows the screen until `q`.
    #[cfg(unix)]
    fn watch(&self, client: &Client) -> Result<ExitCode, Stop> {
        let why = "`top` needs a terminal; `tollgate top --once` prints once";
        let mut terminal =
            terminal::Terminal::open().map_err(|_| Stop::Unusable(why.to_owned()))?;
        client.runtime()?.block_on(self.show(client, &mut terminal))
    }

    #[cfg(unix)]
    async fn show(
        &self,
        client: &Client,
        terminal: &mut terminal::Terminal,
    ) -> Result<ExitCode, Stop> {
        let mut view = self.view();
        let (mut figures, mut rates) = (Figures::default(), Rates::default());
        let mut top = Value::Null;
        // If the first connection fails, the command ends; later, the node may restart.
        let mut events = Some(client.events("/v1/live").await?);
        let mut message = String::new();
        loop {
            tokio::select! {
                key = terminal.key() => match view.press(key) {
                    screen::Pressed::Quit => return Ok(ExitCode::SUCCESS),
                    screen::Pressed::OtherKeys => top = read_top(client, &view).await,
                    screen::Pressed::Nothing => {}
                },
                event = next_event(&mut events, client) => match event {
                    Ok(event) if event.name == "figures" => {
                        message.clear();
                        let next = Figures::new(event.data);
                        rates = Rates::between(&figures, &next);
                        figures = next;
                        top = read_top(client, &view).await;
                    }
                    Ok(_) => {}
                    Err(error) => message = error.to_string(),
                },
            }
            let (width, height) = terminal.size();
            let authority = client.authority();
            let screen =
                Screen { authority, view: &view, figures: &figures, rates: &rates, top: &top };
            let mut lines = screen.lines(width, height);
            if !message.is_empty() {
                lines.insert(1, message.chars().take(width).collect());
                lines.truncate(height);
            }
            terminal.draw(&lines).map_err(|error| Stop::unwritten(&error))?;
        }
    }
}

/// Returns the next event. A stream that ended is opened again after a second.
#[cfg(unix)]
async fn next_event(
    events: &mut Option<super::admin::EventReader>,
    client: &Client,
) -> Result<super::admin::ServerEvent, ClientError> {
    let ended = || ClientError::Ended(client.authority().to_owned());
    let Some(reader) = events else {
        tokio::time::sleep(Duration::from_secs(1)).await;
        *events = Some(client.events("/v1/live").await?);
        return Err(ended());
    };
    match reader.next().await {
        Ok(Some(event)) => Ok(event),
        other => {
            *events = None;
            Err(other.err().unwrap_or_else(ended))
        }
    }
}

fn top_path(view: &View) -> String {
    let scope = if view.is_fleet { "fleet" } else { "node" };
    let (by, window) = (word(view.by), word(view.window));
    format!("/v1/top?by={by}&window={window}&scope={scope}&count=20")
}

/// Returns the top keys; null if the node does not answer, which the figures show too.
#[cfg(unix)]
async fn read_top(client: &Client, view: &View) -> Value {
    let answered = client.call_async("GET", &top_path(view), None).await;
    answered.as_ref().map(AdminResponse::json).unwrap_or_default()
}
