import { useEffect, useState } from 'preact/hooks';
import { SiteLink } from '../../../frame/site-link.tsx';
import { useAccounts } from '../../../lib/accounts.ts';
import { api, call } from '../../../lib/api.ts';
import { useFollowed } from '../../../lib/follow.ts';
import { useFormat } from '../../../lib/format.ts';
import { imageSource } from '../../../lib/image-source.ts';
import { useMessages } from '../../../lib/language.tsx';
import { Button } from '../../../ui/button.tsx';
import { CopyButton } from '../../../ui/copy.tsx';
import { Icon } from '../../../ui/icon.tsx';
import { Time } from '../../../ui/money.tsx';
import { Progress } from '../../../ui/progress.tsx';
import { ErrorText } from '../../../ui/states.tsx';
import { showToast } from '../../../ui/toast.tsx';
import type en from '../messages.en.ts';
import { FailureNotice } from '../shared/failure-notice.tsx';
import { readPicture, type Picture } from '../shared/pictures.ts';
import { UsageLine } from '../shared/usage-line.tsx';
import { hasEnded, readTask, type ImageTask, type Job } from './image-state.ts';

interface TaskProps {
  readonly task: ImageTask;
  readonly onChange: (task: ImageTask) => void;
  readonly onRemove: () => void;
  /** Writes its prompt into the form again. */
  readonly onRepeat: () => void;
  /** Takes an image as the picture to edit. Null if the model takes none. */
  readonly onUse: ((picture: Picture) => void) | null;
}

/** Images that were ordered: how far they are, then the images. */
export function TaskView({ task, onChange, onRemove, onRepeat, onUse }: TaskProps) {
  const t = useMessages<typeof en>();
  const { selected } = useAccounts();
  const isOfOther = task.account !== null && selected !== null && selected.id !== task.account;
  return (
    <article class="card images-task">
      <header class="images-task-head">
        <p class="images-prompt">{task.prompt}</p>
        <span class="images-task-actions">
          <Button kind="quiet" size="small" icon="refresh" onClick={onRepeat}>
            {t('usePrompt')}
          </Button>
          {hasEnded(task) && (
            <Button
              kind="quiet"
              size="small"
              icon="trash"
              aria-label={t('removeTask')}
              title={t('removeTask')}
              onClick={onRemove}
            />
          )}
        </span>
      </header>
      {hasEnded(task) ? (
        <Result task={task} onUse={onUse} />
      ) : isOfOther ? (
        <p class="small soft">{t('otherAccount')}</p>
      ) : (
        <Waiting task={task} onChange={onChange} />
      )}
      <p class="chat-fact-list small soft">
        <span>{task.model}</span>
        <Time value={task.createdAt} style="ago" />
        {task.usage !== null && <UsageLine usage={task.usage} />}
        <SiteLink href={`/jobs/${task.id}`}>{t('job')}</SiteLink>
      </p>
    </article>
  );
}

/** Takes the place of images that will come, so that nothing moves when they do. */
const Places = ({ count }: { readonly count: number }) => (
  <ul class="images-results" aria-hidden="true">
    {Array.from({ length: count }, (_, i) => (
      <li key={i} class="images-place" />
    ))}
  </ul>
);

/** Images that are being ordered. */
export function OrderView({ prompt, count }: Pick<ImageTask, 'prompt' | 'count'>) {
  const t = useMessages<typeof en>();
  return (
    <article class="card images-task" aria-busy="true">
      <header class="images-task-head">
        <p class="images-prompt">{prompt}</p>
      </header>
      <div class="images-waiting">
        <Places count={count} />
        <Progress share={null} label={t('sending')} />
        <p class="images-actions small soft" role="status">
          {t('sending')}
        </p>
      </div>
      <p class="small soft">…</p>
    </article>
  );
}

/** The place in the queue or the progress, and a button to stop. */
function Waiting({ task, onChange }: Pick<TaskProps, 'task' | 'onChange'>) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  const [error, setError] = useState<unknown>(null);
  const [isStopping, setIsStopping] = useState(false);
  const path = { job_id: task.id };
  const { data: job, error: readError } = useFollowed<Job>({
    queryKey: ['playground-job', task.id],
    read: (signal) => call(api.GET('/v1/jobs/{job_id}', { params: { path }, signal })),
    eventsPath: `/v1/jobs/${encodeURIComponent(task.id)}/events`,
    hasEnded,
  });
  useEffect(() => {
    if (job !== undefined && hasEnded(job)) onChange(readTask(task, job));
  }, [job]);
  const stop = (): void => {
    setIsStopping(true);
    call(api.DELETE('/v1/jobs/{job_id}', { params: { path } })).then(
      (stopped) => {
        if (hasEnded(stopped)) onChange(readTask(task, stopped));
      },
      (reason: unknown) => {
        setError(reason);
        setIsStopping(false);
      },
    );
  };
  const { position = null, eta_seconds: eta = null, progress = 0 } = job ?? {};
  const place =
    job === undefined || job.status === 'active'
      ? t('drawing')
      : position === null || position === 0
        ? t('nextInQueue')
        : t('inQueue', { count: position });
  return (
    <div class="images-waiting">
      <Places count={task.count} />
      <Progress share={progress > 0 ? progress : null} label={t('drawing')} />
      <div class="images-actions">
        <p class="small soft" role="status">
          {place}
          {eta !== null && ` · ${t('left', { time: format.duration(Math.max(1, Math.round(eta))) })}`}
        </p>
        <Button size="small" busy={isStopping || job?.cancel_requested === true} onClick={stop}>
          {t('stop')}
        </Button>
      </div>
      <ErrorText error={error ?? readError} />
    </div>
  );
}

function Result({ task, onUse }: Pick<TaskProps, 'task' | 'onUse'>) {
  const t = useMessages<typeof en>();
  const { status, failure, urls } = task;
  if (failure !== null) return <FailureNotice failure={failure} />;
  if (status !== 'cancelled' && urls.length === 0) return <p class="soft">{t('imageGone')}</p>;
  if (status === 'cancelled') return <p class="soft">{t('cancelledImages')}</p>;
  return (
    <ul class="images-results">
      {urls.map((url, i) => (
        <li key={url}>
          <ImageResult url={url} alt={t('imageOf', { count: i + 1, prompt: task.prompt })} onUse={onUse} />
        </li>
      ))}
    </ul>
  );
}

function ImageResult({
  url,
  alt,
  onUse,
}: {
  readonly url: string;
  readonly alt: string;
  readonly onUse: TaskProps['onUse'];
}) {
  const t = useMessages<typeof en>();
  const [isGone, setIsGone] = useState(false);
  const source = imageSource(url);
  const use = async (take: (picture: Picture) => void): Promise<void> => {
    const blob = await (await fetch(source)).blob();
    take(await readPicture(new File([blob], t('image'), { type: blob.type })));
    scrollTo({ top: 0 });
  };
  if (isGone) return <p class="soft small images-gone">{t('imageGone')}</p>;
  return (
    <figure class="images-result">
      <a href={source} target="_blank" rel="noopener">
        <img src={source} alt={alt} loading="lazy" onError={() => setIsGone(true)} />
      </a>
      <figcaption>
        <a class="button quiet small" href={source} download="">
          <Icon name="download" />
          {t('download')}
        </a>
        <CopyButton text={url} label={t('copyLink')} />
        {onUse !== null && (
          <Button
            kind="quiet"
            size="small"
            onClick={() => {
              use(onUse).catch(() => showToast(t('cannotUse'), 'error'));
            }}
          >
            {t('editThis')}
          </Button>
        )}
      </figcaption>
    </figure>
  );
}
