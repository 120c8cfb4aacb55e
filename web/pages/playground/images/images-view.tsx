import { useMemo, useState } from 'preact/hooks';
import { useMessages } from '../../../lib/language.tsx';
import { refreshAccounts } from '../../../lib/accounts.ts';
import { takesPictures } from '../../../lib/models.ts';
import { useStore } from '../../../lib/store.ts';
import { Button } from '../../../ui/button.tsx';
import { TextArea } from '../../../ui/field.tsx';
import { EmptyState } from '../../../ui/states.tsx';
import type { ModeProps } from '../index.tsx';
import type en from '../messages.en.ts';
import { ShowCode } from '../shared/code-dialog.tsx';
import { FailureNotice } from '../shared/failure-notice.tsx';
import { readFailure, type Failure } from '../shared/failure.ts';
import { ModelChoice } from '../shared/model-choice.tsx';
import { addUsage } from '../shared/usage.ts';
import { UsageTotal } from '../shared/usage-line.tsx';
import { ImageInputs } from './image-inputs.tsx';
import { createImageRequest, orderImages } from './image-request.ts';
import { ImageSettings } from './image-settings.tsx';
import { hasEnded, openImages, sumImages, type ImageState, type ImageTask } from './image-state.ts';
import { OrderView, TaskView } from './task-view.tsx';

/** Each that is followed has a connection, of which browsers have few. */
const maxRunning = 3;
/** As in the API. */
const minPromptChars = 3;

/** Images from a description, or from pictures and a description, and those of this session. */
export function ImagesView({ owner, models, model, onChooseModel }: ModeProps) {
  const t = useMessages<typeof en>();
  const store = useMemo(() => openImages(owner), [owner]);
  const state = useStore(store);
  const change = (changes: Partial<ImageState>): void => store.set({ ...store.get(), ...changes });
  const [failure, setFailure] = useState<Failure | null>(null);
  const [ordered, setOrdered] = useState<Pick<ImageTask, 'prompt' | 'count'> | null>(null);
  const isBusy = ordered !== null;
  const isFull = state.tasks.filter((task) => !hasEnded(task)).length >= maxRunning;
  const isReady = state.prompt.trim().length >= minPromptChars && !isFull;

  const order = async (): Promise<void> => {
    const request = createImageRequest(model, store.get());
    setOrdered({ prompt: request.body.prompt, count: request.body.n ?? 1 });
    setFailure(null);
    try {
      const task = await orderImages(request);
      change({ tasks: [task, ...store.get().tasks.filter(({ id }) => id !== task.id)] });
    } catch (error) {
      setFailure(readFailure(error));
    } finally {
      setOrdered(null);
    }
  };
  const changeTask = (task: ImageTask): void => {
    change({ tasks: store.get().tasks.map((other) => (other.id === task.id ? task : other)) });
    if (hasEnded(task)) refreshAccounts().catch(() => undefined);
  };
  const remove = (id: string): void => {
    const { tasks, spentBefore } = store.get();
    const removed = tasks.find((task) => task.id === id);
    change({
      tasks: tasks.filter((task) => task.id !== id),
      spentBefore: addUsage(spentBefore, removed?.usage ?? null),
    });
  };
  return (
    <div class="playground-columns">
      <div class="playground-main">
        <form
          class="card images-form"
          onSubmit={(event) => {
            event.preventDefault();
            if (isReady && !isBusy) order().catch(() => undefined);
          }}
        >
          <TextArea
            label={t('imagePrompt')}
            rows={3}
            placeholder={t('imagePromptPlaceholder')}
            value={state.prompt}
            onInput={({ currentTarget: { value } }) => change({ prompt: value })}
          />
          {takesPictures(model) ? (
            <ImageInputs model={model} state={state} onChange={change} />
          ) : (
            state.pictures.length > 0 && <p class="small soft">{t('picturesUnused')}</p>
          )}
          {failure !== null && <FailureNotice failure={failure} />}
          <div class="images-actions">
            <Button kind="primary" type="submit" busy={isBusy} disabled={!isReady}>
              {t(state.pictures.length > 0 && takesPictures(model) ? 'editImage' : 'generate')}
            </Button>
            <ShowCode read={() => createImageRequest(model, state)} />
            {isFull && <p class="small soft">{t('tooManyRunning', { count: maxRunning })}</p>}
          </div>
        </form>
        <section class="images-history" aria-label={t('history')}>
          <UsageTotal label={t('sessionCost')} sum={sumImages(state)} />
          {ordered !== null && <OrderView {...ordered} />}
          {state.tasks.length === 0 && !isBusy ? (
            <EmptyState title={t('noImages')}>{t('noImagesText')}</EmptyState>
          ) : (
            state.tasks.map((task) => (
              <TaskView
                key={task.id}
                task={task}
                onChange={changeTask}
                onRemove={() => remove(task.id)}
                onRepeat={() => change({ prompt: task.prompt })}
                onUse={takesPictures(model) ? (picture) => change({ pictures: [picture], mask: null }) : null}
              />
            ))
          )}
        </section>
      </div>
      <aside class="playground-side card" aria-label={t('settings')}>
        <ModelChoice models={models} model={model} onChoose={onChooseModel} />
        <ImageSettings
          options={state.options}
          model={model}
          onChange={(options) => change({ options: { ...state.options, ...options } })}
        />
      </aside>
    </div>
  );
}
