import { Link } from 'wouter-preact';
import { useMay } from '../../admin/session.ts';
import { ModelLink } from '../../admin/links.tsx';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { Badge } from '../../ui/card.tsx';
import { Fact } from '../../ui/fact.tsx';
import { QueryView, Skeleton } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import { DrainQueue } from './drain-queue.tsx';
import type en from './messages.en.ts';
import {
  queueNames,
  useDemand,
  useQueues,
  type AdminQueue,
  type QueueDemand,
  type QueueName,
} from './read-work.ts';

export function QueueList() {
  const demand = useDemand().data;
  return (
    <QueryView query={useQueues()} loading={<Skeleton lines={6} height="5rem" />}>
      {(queues) => (
        <div class="admin-work-queues">
          {queueNames.map((name) => (
            <QueueCard key={name} name={name} queue={queues[name]} demand={demand?.[name]} />
          ))}
        </div>
      )}
    </QueryView>
  );
}

interface QueueProps {
  readonly name: QueueName;
  readonly queue: AdminQueue;
  readonly demand: QueueDemand | undefined;
}

function QueueCard({ name, queue, demand }: QueueProps) {
  const t = useMessages<typeof en>();
  const mayDrain = useMay('all');
  return (
    <section class="card" aria-label={t(`queue_${name}`)}>
      <header class="card-head">
        <h2 class="admin-work-name">
          {t(`queue_${name}`)} <code class="soft small">{name}</code>
        </h2>
        {mayDrain && <DrainQueue queue={name} />}
      </header>
      <div>
        <p class="admin-work-head">
          {queue.workers === 0 ? (
            <Badge tone="bad">{t('noWorker')}</Badge>
          ) : (
            <Badge tone="good">{t('workers', { count: queue.workers })}</Badge>
          )}
          {queue.versions !== null && <span class="soft small">{queue.versions}</span>}
        </p>
        {queue.workers === 0 && <p class="soft small">{t('noWorkerText')}</p>}
      </div>
      <QueueFacts name={name} queue={queue} demand={demand} />
      {demand !== undefined && <QueueModels name={name} demand={demand} />}
    </section>
  );
}

function QueueFacts({ name: queueName, queue, demand }: QueueProps) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const { waiting, waiting_for_slot: forSlot, oldest_waiting_seconds: oldest } = queue;
  const counts = [
    ['running', queue.active, true],
    ['linesWaiting', queue.lines_waiting, true],
    ['linesRunning', queue.lines_active, true],
    ['failedJobs', queue.failed, true],
    ['inputsWaiting', queue.inputs_waiting ?? 0, (queue.inputs_waiting ?? 0) > 0],
    ['delayed', queue.delayed, queue.delayed > 0],
  ] as const;
  return (
    <dl class="facts admin-work-facts">
      <Fact name={t('waiting')}>
        <span class="admin-work-figure">{format.number(waiting)}</span>
        {forSlot > 0 && <span class="admin-work-beside">{t('waitingForSlot', { count: forSlot })}</span>}
      </Fact>
      {counts.map(
        ([name, count, isShown]) =>
          isShown && (
            <Fact key={name} name={t(name)}>
              <span class="admin-work-figure">
                {name === 'failedJobs' && count > 0 ? (
                  <Link href={`/admin/work?failed=${queueName}`} aria-label={t('openFailed', { count })}>
                    {format.number(count)}
                  </Link>
                ) : (
                  format.number(count)
                )}
              </span>
            </Fact>
          ),
      )}
      <Fact name={t('oldest')}>{oldest === 0 ? '–' : format.duration(oldest)}</Fact>
      <Fact name={t('eta')}>
        {demand === undefined || demand.waiting === 0
          ? '–'
          : demand.eta_seconds === null
            ? t('etaUnknown')
            : format.duration(demand.eta_seconds)}
      </Fact>
    </dl>
  );
}

/** What keeps the queue busy. */
function QueueModels({ name, demand }: { readonly name: QueueName; readonly demand: QueueDemand }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const rows = Object.entries(demand.models).toSorted(
    ([, one], [, other]) => other.waiting - one.waiting || other.running - one.running,
  );
  if (rows.length === 0) return <p class="soft small">{t('idle')}</p>;
  return (
    <Table
      caption={`${t(`queue_${name}`)}: ${t('byModel')}`}
      rows={rows}
      keyOf={([model]) => model}
      columns={[
        {
          name: t('model'),
          isHeader: true,
          render: ([model]) => (model === 'other' ? t('otherModel') : <ModelLink id={model} />),
        },
        { name: t('waiting'), isNumber: true, render: ([, { waiting }]) => format.number(waiting) },
        { name: t('running'), isNumber: true, render: ([, { running }]) => format.number(running) },
        {
          name: t('oldest'),
          isNumber: true,
          render: ([, { oldest_waiting_seconds: oldest }]) => (oldest === 0 ? '–' : format.duration(oldest)),
        },
      ]}
    />
  );
}
