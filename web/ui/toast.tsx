import { normalizeProps, useMachine } from '@zag-js/preact';
import * as toast from '@zag-js/toast';
import { useCommon } from '../lib/language.tsx';
import { useUniqueId } from '../lib/unique-id.ts';
import { Button } from './button.tsx';

const toasts = toast.createStore({ placement: 'bottom-end', overlap: false, duration: 6_000 });

/** Says that something is done, for some seconds. What went wrong belongs beside what was tried. */
export function showToast(title: string, type: 'success' | 'error' = 'success'): void {
  toasts.create({ title, type });
}

const undoMs = 12_000;

/** Says that something is done, and offers to undo it. @returns a function that takes the offer back */
export function offerUndo(title: string, action: string, undo: () => void): () => void {
  const id = toasts.create({
    title,
    type: 'success',
    duration: undoMs,
    action: { label: action, onClick: undo },
  });
  return () => toasts.dismiss(id);
}

export function Toasts() {
  const service = useMachine(toast.group.machine, { id: useUniqueId(), store: toasts });
  const api = toast.group.connect(service, normalizeProps);
  return (
    <div {...api.getGroupProps()} class="toasts">
      {api.getToasts().map((options, index) => (
        <Toast key={options.id} options={options} index={index} parent={service} />
      ))}
    </div>
  );
}

type GroupService = toast.GroupService;

function Toast({
  options,
  index,
  parent,
}: {
  readonly options: toast.Options;
  readonly index: number;
  readonly parent: GroupService;
}) {
  const common = useCommon();
  const service = useMachine(toast.machine, { ...options, index, parent });
  const api = toast.connect(service, normalizeProps);
  return (
    <div {...api.getRootProps()} class={`toast ${options.type ?? ''}`}>
      <p {...api.getTitleProps()}>{options.title}</p>
      {options.action !== undefined && (
        <button {...api.getActionTriggerProps()} type="button" class="button secondary small">
          {options.action.label}
        </button>
      )}
      <Button kind="quiet" size="small" icon="close" aria-label={common('close')} onClick={api.dismiss} />
    </div>
  );
}
