use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_nats::{HeaderMap, Subscriber};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, status};
use crate::link::{Answer, Link, Pause};
use crate::task::{Cancellation, Held, Task};
use crate::wire::*;
use crate::worker::Inner;

const COMPLETE: Duration = Duration::from_secs(10);
const CLOSE_MORE: Duration = Duration::from_secs(10);
const NEXT_MORE: Duration = Duration::from_secs(5);
const DONE_MAX: usize = 10_000; // claims that are remembered so that a task which comes again is known
const TEXT_MAX: usize = 4096;

/// One session with a gateway: renews what is in hand until it is closed, lost, or forgotten by the gateway.
pub struct Session {
    opened: Told,
    link: Link,
    owner: Arc<Inner>,
    over: CancellationToken,
    state: Mutex<State>,
}

struct State {
    hand: HashMap<String, Held>,
    done: HashSet<String>,
    done_order: VecDeque<String>,
    renewed_at: Instant,
    unknown: bool, // the gateway's last answer was that it does not know the session
    retired: bool, // takes no new tasks
    closing: bool,
}

impl Session {
    /// `sent_at`: when the open was sent; the lease counts from then.
    pub fn begin(owner: Arc<Inner>, link: Link, opened: Told, inbox: Subscriber, sent_at: Instant) -> Arc<Self> {
        let state = State {
            hand: HashMap::new(),
            done: HashSet::new(),
            done_order: VecDeque::new(),
            renewed_at: sent_at,
            unknown: false,
            retired: false,
            closing: false,
        };
        let session = Arc::new(Self { opened, link, owner, over: CancellationToken::new(), state: Mutex::new(state) });
        tokio::spawn(Arc::clone(&session).live(inbox));
        session
    }

    pub fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    pub fn takes_no_more(&self) -> bool {
        self.is_over() || self.state().retired
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    async fn request(&self, operation: &str, ask: &Ask<'_>, timeout: Duration) -> Answer {
        self.look_at_lease();
        if self.is_over() {
            return Answer::None("the session is over".into());
        }
        let subject = format!("{}.{operation}", self.opened.subject);
        let answer = self.link.request(subject, ask, timeout, HeaderMap::new()).await;
        match &answer {
            Answer::Told(Told { status: status::OK, .. }) => self.state().unknown = false,
            Answer::NoResponders | Answer::Told(Told { status: status::NOT_FOUND, .. }) => {
                self.state().unknown = true;
                self.end_if_forgotten();
            }
            Answer::Told(Told { status: code @ (status::INVALID | status::DENIED), text, .. }) => {
                self.owner.fatal(Error::new(*code, format!("{operation}: {text}")));
            }
            Answer::Told(_) | Answer::None(_) => {}
        }
        answer
    }

    /// Asks for tasks and takes them. Returns the status, if there was one.
    pub async fn next(self: Arc<Self>, max: usize, wait: Duration) -> Option<u32> {
        let ask = Ask { max, wait_ms: wait.as_millis() as u64, ..Ask::default() };
        let answer = tokio::select! {
            answer = self.request("next", &ask, wait + NEXT_MORE) => answer,
            () = self.over.cancelled() => return None,
        };
        let Answer::Told(told) = answer else { return None };
        if told.status == status::OK && !self.is_over() {
            told.tasks.into_iter().for_each(|task| self.take(task));
        }
        Some(told.status)
    }

    fn take(self: &Arc<Self>, mut task: Task) {
        let details_max = self.payload_max().min(self.link.nats.max_payload() / 2);
        let mut state = self.state();
        if task.claim.is_empty() || state.hand.contains_key(&task.claim) || state.done.contains(&task.claim) {
            return;
        }
        let held = Held::new(&mut task, details_max);
        state.hand.insert(held.claim.clone(), held.clone());
        drop(state);
        Inner::run_task(&self.owner, Arc::clone(self), held, task);
    }

    fn payload_max(&self) -> usize {
        if self.opened.payload_max == 0 { usize::MAX } else { self.opened.payload_max as usize }
    }

    // ---- lease ----

    /// Renews, and takes notices, until the session is over.
    async fn live(self: Arc<Self>, mut inbox: Subscriber) {
        let every = Duration::from_millis(self.opened.renew_ms);
        let mut pause = Pause::default();
        let mut due = Instant::now() + every;
        let mut sent = 0u64;
        // Others go out before one is answered or given up: a slow answer counts, a lost one costs no lease.
        let mut flying = FuturesUnordered::new();
        let mut inbox_open = true;
        loop {
            tokio::select! {
                () = self.over.cancelled() => break,
                () = sleep_until(due) => {
                    sent += 1;
                    due = Instant::now() + every;
                    flying.push(self.renew(sent));
                }
                Some((number, renewed)) = flying.next() => {
                    if renewed {
                        pause.reset();
                    } else if number == sent {
                        due = Instant::now() + pause.next().min(every.max(Pause::FIRST));
                    }
                }
                message = inbox.next(), if inbox_open => match message {
                    Some(message) => self.notice(serde_json::from_slice(&message.payload).unwrap_or_default()),
                    None => inbox_open = false,
                },
                () = sleep_until(self.lease_end()) => self.look_at_lease(),
            }
        }
    }

    async fn renew(&self, number: u64) -> (u64, bool) {
        let sent_at = Instant::now();
        let (mut ask, mut beats) = (Ask::default(), Vec::new());
        {
            let state = self.state();
            if state.closing && state.hand.is_empty() {
                return (number, true);
            }
            let mut room = self.link.nats.max_payload() / 16 * 9; // in base64 three quarters of what fits
            for held in state.hand.values() {
                let (message, beat) = held.running(room);
                room -= message.details.len();
                ask.running.push(message);
                beats.extend(beat.map(|beat| (held.clone(), beat)));
            }
        }
        if !self.link.is_connected() {
            return (number, false);
        }
        let answer = self.request("renew", &ask, Duration::from_millis(self.opened.lease_ms)).await;
        let Answer::Told(Told { status: status::OK, cancelled, gone, .. }) = answer else { return (number, false) };
        {
            let mut state = self.state();
            state.renewed_at = state.renewed_at.max(sent_at);
        }
        for (held, beat) in beats {
            held.beat_arrived(beat);
        }
        cancelled.into_iter().for_each(|notice| self.notice(notice));
        for claim in gone {
            let held = self.state().hand.get(&claim).cloned();
            if let Some(held) = held {
                held.lose("lease_lost", "the claim is gone");
                self.drop_task(&held);
            }
        }
        (number, true)
    }

    fn notice(&self, notice: Notice) {
        let held = self.state().hand.get(&notice.claim).cloned();
        if let Some(held) = held {
            held.cancel(Cancellation { kind: notice.kind, reason: notice.reason, grace_ms: notice.grace_ms });
        }
    }

    fn lease_end(&self) -> Instant {
        self.state().renewed_at + Duration::from_millis(self.opened.lease_ms)
    }

    fn look_at_lease(&self) {
        if Instant::now() >= self.lease_end() && !self.is_over() {
            tracing::warn!(tasks = self.state().hand.len(), "no renewal was answered for a lease: the tasks are lost");
            self.end("lease_lost", "no renewal was answered for a lease");
        }
    }

    // ---- the end of a task ----

    /// Sends an outcome until it is answered, or the task is lost.
    pub async fn complete(&self, held: &Held, outcome: Outcome) {
        let outcome = self.fitting(outcome);
        let mut pause = Pause::default();
        let repeated = async {
            while !self.completed(&outcome).await {
                sleep(pause.next()).await;
            }
        };
        tokio::select! {
            biased;
            () = held.lost().cancelled() => {}
            () = repeated => self.drop_task(held),
        }
    }

    async fn completed(&self, outcome: &Outcome) -> bool {
        let ask = Ask { outcomes: vec![outcome], ..Ask::default() };
        match self.request("complete", &ask, COMPLETE).await {
            Answer::Told(Told { status: status::OK, results, .. }) => match results.first() {
                None | Some(Told { status: status::UNAVAILABLE | status::TIMEOUT, .. }) => false,
                Some(Told { status: status::OK | status::FENCED, .. }) => true,
                Some(Told { status, text, .. }) => {
                    tracing::warn!(claim = outcome.claim, status, text, "an outcome was refused");
                    true
                }
            },
            Answer::Told(told) => told.status == status::FENCED,
            Answer::NoResponders | Answer::None(_) => false,
        }
    }

    fn fitting(&self, outcome: Outcome) -> Outcome {
        let max = self.payload_max().min(self.link.nats.max_payload().saturating_sub(1024) / 4 * 3);
        if outcome.output.len() <= max {
            return outcome;
        }
        failure(
            &outcome.claim,
            &format!("the output has {} bytes; the limit is {max}", outcome.output.len()),
            "too_large",
            true,
        )
    }

    fn drop_task(self: &Session, held: &Held) {
        let mut state = self.state();
        if state.hand.remove(&held.claim).is_none() {
            return;
        }
        state.done.insert(held.claim.clone());
        state.done_order.push_back(held.claim.clone());
        if state.done_order.len() > DONE_MAX
            && let Some(oldest) = state.done_order.pop_front()
        {
            state.done.remove(&oldest);
        }
        drop(state);
        self.end_if_forgotten();
        self.owner.changed.notify_one();
    }

    // ---- the end of the session ----

    /// Takes no new tasks, and closes when nothing is in hand.
    pub fn retire(self: &Arc<Self>) {
        self.state().retired = true;
        let session = Arc::clone(self);
        tokio::spawn(async move {
            while !session.is_over() && !session.state().closing {
                if session.state().hand.is_empty() {
                    return session.close(Duration::ZERO).await;
                }
                sleep(Duration::from_millis(100)).await;
            }
        });
    }

    /// Closes it: what runs after the limit is told to end. Returns when nothing is held.
    pub async fn close(&self, limit: Duration) {
        {
            let mut state = self.state();
            state.retired = true;
            state.closing = true;
        }
        let deadline = Instant::now() + limit;
        let grace = Duration::from_millis(self.opened.grace_ms);
        let closed = async {
            let mut pause = Pause::default();
            loop {
                let more = if self.state().hand.is_empty() { Duration::ZERO } else { grace };
                if Instant::now() >= deadline + CLOSE_MORE + more {
                    break;
                }
                let left = deadline.saturating_duration_since(Instant::now());
                let ask = Ask { limit_ms: left.as_micros().div_ceil(1000) as u64, ..Ask::default() };
                let answer = self.request("close", &ask, left + CLOSE_MORE).await;
                if matches!(answer, Answer::Told(Told { status: status::OK, .. })) {
                    break;
                }
                sleep(pause.next()).await;
            }
        };
        tokio::select! {
            () = self.over.cancelled() => {}
            () = closed => self.end("shutdown", "the session was closed"),
        }
    }

    fn end_if_forgotten(&self) {
        let forgotten = {
            let state = self.state();
            state.unknown && state.hand.is_empty()
        };
        if forgotten {
            self.end("lease_lost", "the gateway does not know the session");
        }
    }

    /// Sends nothing any more, whatever is still in hand.
    pub fn end(&self, kind: &str, reason: &str) {
        let hand = std::mem::take(&mut self.state().hand);
        self.over.cancel();
        for held in hand.values() {
            held.lose(kind, reason);
        }
        self.owner.changed.notify_one();
    }
}

pub fn failure(claim: &str, text: &str, kind: &str, last: bool) -> Outcome {
    let text = text.chars().take(TEXT_MAX).collect();
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
    let kind = kind.chars().map(allowed).take(64).collect();
    Outcome { claim: claim.into(), failure: Some(TaskFailure { text, kind, last }), ..Outcome::default() }
}
