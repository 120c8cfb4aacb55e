import { nameDrained } from '../../../shared/catalog/drained-routes.ts';
import { conditionNames } from '../../../shared/contract/condition-names.ts';
import { LastChange } from '../../admin/last-change.tsx';
import { useOperatorReasons } from '../../admin/operator-reasons.ts';
import { SiteLink } from '../../frame/site-link.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Icon } from '../../ui/icon.tsx';
import { enumerate } from './enumerate.tsx';
import { findNotes, findProblems, type Note, type Problem } from './find-problems.ts';
import { deadEntriesHref, failuresHref, modelHref, upstreamHref, workHref } from './hrefs.ts';
import { queueNames } from './queue-table.tsx';
import { RefusingText } from './refusing-text.tsx';
import type en from './messages.en.ts';
import type { Overview } from './use-overview.ts';

type Condition = Overview['conditions'][number];

/** What is wrong now, each in a sentence that leads to its cause. */
export function ProblemList({ overview }: { readonly overview: Overview }) {
  const t = useMessages<typeof en>();
  const problems = findProblems(overview);
  const notes = findNotes(overview);
  const isCalm = problems.length === 0;
  const title = isCalm ? t('calm') : t('wrong', { count: problems.length });
  return (
    <section class={`card admin-overview-problems ${isCalm ? 'calm' : 'wrong'}`} aria-labelledby="problems">
      <h2 id="problems">
        <Icon name={isCalm ? 'check' : 'warning'} size={26} />
        <span>{title}</span>
      </h2>
      <p class="unseen" role="status">
        {title}
      </p>
      {isCalm && <p class="soft">{t('calmText')}</p>}
      <ul>
        {problems.map((problem) => (
          <li key={keyOf(problem)}>
            <ProblemText problem={problem} />
          </li>
        ))}
      </ul>
      {notes.length > 0 && (
        <>
          <h3>{t('notes')}</h3>
          <ul class="admin-overview-notes">
            {notes.map((note) => (
              <li key={`${note.kind} ${note.upstream.name}`}>
                <NoteText note={note} />
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function keyOf(problem: Problem): string {
  switch (problem.kind) {
    case 'condition':
      return `${problem.condition.name} ${problem.condition.since} ${problem.condition.title}`;
    case 'refusing':
      return `refusing ${problem.models.join(' ')}`;
    case 'model':
      return `model ${problem.traffic.model}`;
    case 'breaker':
    case 'keys':
      return `${problem.kind} ${problem.upstream.name}`;
    default:
      return problem.kind;
  }
}

function ProblemText({ problem }: { readonly problem: Problem }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const share = ({ failed, requests }: { failed: number; requests: number }): string =>
    format.percent(failed / requests);
  switch (problem.kind) {
    case 'condition':
      return <ConditionText condition={problem.condition} />;
    case 'refusing':
      return <RefusingText models={problem.models} causes={problem.causes} />;
    case 'unread':
      return <p>{t('unreadParts', { parts: problem.parts.map((part) => t(`part_${part}`)).join(', ') })}</p>;
    case 'ledger':
      return (
        <p>
          <a href="#ledger">{t('ledgerBehind', { lag: format.duration(problem.lagSeconds) })}</a>
        </p>
      );
    case 'dead':
      return (
        <p>
          <SiteLink href={deadEntriesHref}>{t('deadEntries', { count: problem.entries })}</SiteLink>
        </p>
      );
    case 'failures':
      return (
        <p>
          <SiteLink href={failuresHref(problem.since)}>
            {t('manyFailures', { share: share(problem), count: problem.requests })}
          </SiteLink>
        </p>
      );
    case 'model': {
      const { model, failed, requests } = problem.traffic;
      return (
        <p>
          {t.nodes('modelFails', {
            model: <SiteLink href={modelHref(model)}>{model}</SiteLink>,
            failures: (
              <SiteLink href={failuresHref(problem.since, model)}>
                {t('failedOf', { failed: format.number(failed), requests: format.number(requests) })}
              </SiteLink>
            ),
          })}
        </p>
      );
    }
    case 'breaker':
      return (
        <p>
          {t.nodes(problem.upstream.breaker === 'half-open' ? 'breakerHalfOpen' : 'breakerOpen', {
            upstream: enumerate([problem.upstream.name], upstreamHref),
            open: format.number(problem.upstream.open_breakers),
            routes: format.number(problem.upstream.routes),
          })}
        </p>
      );
    case 'keys':
      return (
        <p>
          {t.nodes('keysRefused', {
            upstream: enumerate([problem.upstream.name], upstreamHref),
            refused: format.number(problem.upstream.refused_keys ?? 0),
            keys: format.number(problem.upstream.keys),
          })}
        </p>
      );
    case 'builds':
      return (
        <p>
          <a href="#processes">{t('mixedBuilds', { builds: problem.builds.join(', ') })}</a>
        </p>
      );
  }
}

const findName = (condition: Condition) => conditionNames.find((name) => name === condition.name);

function ConditionText({ condition }: { readonly condition: Condition }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { since, text, about } = condition;
  const name = findName(condition);
  const models = about.filter(({ kind }) => kind === 'model').flatMap(({ id }) => id ?? []);
  return (
    <>
      <p>
        <ConditionTitle condition={condition} />
        {models.length > 0 && <> {t.nodes('nothingElse', { models: enumerate(models, modelHref) })}</>}
      </p>
      <p class="admin-overview-age">
        <time dateTime={since} title={format.exactTime(since)}>
          {t('since', { ago: format.ago(since) })}
        </time>
      </p>
      <details>
        <summary>{t('advice')}</summary>
        {name !== undefined && <p>{t(`advice_${name}`)}</p>}
        {/* It says which key. */}
        {(name === undefined || name === 'upstream_key_refused') && <p lang="en">{text}</p>}
      </details>
    </>
  );
}

function ConditionTitle({ condition }: { readonly condition: Condition }) {
  const t = useMessages<typeof en>();
  const { title, about } = condition;
  const name = findName(condition);
  if (name === undefined) return <span lang="en">{title}</span>;
  const nameQueue = (id: string): string => {
    const queue = queueNames.find((one) => one === id);
    return queue === undefined ? id : t(`queue_${queue}`);
  };
  const idsOf = (wanted: string): string[] =>
    about.filter((one) => one.kind === wanted).flatMap(({ id }) => id ?? []);
  switch (name) {
    case 'no_workers':
    case 'worker_faults':
      return (
        <>
          {t.nodes(`condition_${name}`, {
            queues: enumerate(idsOf('queue'), () => workHref, nameQueue),
          })}
        </>
      );
    case 'upstream_key_refused':
      return <>{t.nodes(`condition_${name}`, { upstream: enumerate(idsOf('upstream'), upstreamHref) })}</>;
    case 'ledger_dead_entries':
      return <SiteLink href={deadEntriesHref}>{t(`condition_${name}`)}</SiteLink>;
    case 'ledger_behind':
      return <a href="#ledger">{t(`condition_${name}`)}</a>;
    default:
      // The customers' page of the state says what of the service it stops.
      return <a href="/status">{t(`condition_${name}`)}</a>;
  }
}

function NoteText({ note }: { readonly note: Note }) {
  const say = useOperatorReasons();
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { name, drained, drained_models: models, slots } = note.upstream;
  const upstream = enumerate([name], upstreamHref);
  if (note.kind === 'refusal')
    return (
      <p>
        {t.nodes('lastRefused', {
          upstream,
          time: (
            <time dateTime={note.refusal.at} title={format.exactTime(note.refusal.at)}>
              {format.ago(note.refusal.at)}
            </time>
          ),
          reason: say(note.refusal.reason),
        })}
      </p>
    );
  if (note.kind === 'full')
    return (
      <p>
        {t.nodes('slotsFull', {
          upstream,
          count: slots,
          waiting: <SiteLink href={workHref}>{format.number(note.waiting)}</SiteLink>,
        })}
      </p>
    );
  const [onlyModel, ...others] = models;
  const ofModel = others.length === 0 ? onlyModel : undefined;
  return (
    <>
      <p>
        {drained
          ? t.nodes('drained', { upstream })
          : t.nodes('drainedModels', { upstream, models: enumerate(models, modelHref) })}
      </p>
      {(drained || ofModel !== undefined) && (
        <LastChange resource={`upstream:${nameDrained(name, drained ? null : ofModel!)}`} />
      )}
    </>
  );
}
