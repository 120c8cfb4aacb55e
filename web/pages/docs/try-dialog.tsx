import { useEffect, useRef, useState } from 'preact/hooks';
import type { TriedOperation } from '../../../api/pages/docs-data.ts';
import { SiteLink } from '../../frame/site-link.tsx';
import { useAccounts } from '../../lib/accounts.ts';
import { useMessages, useCommon } from '../../lib/language.tsx';
import { signInHref } from '../../lib/next-path.ts';
import { useSession } from '../../lib/session.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog, DialogActions } from '../../ui/dialog.tsx';
import { Field, Select, TextArea } from '../../ui/field.tsx';
import type en from './messages.en.ts';
import { createRequest } from './send-tried.ts';
import { TriedResponse } from './tried-response.tsx';

/** Sends an operation of the reference for real, with the session, and shows the response. */
export function TryDialog({
  operation,
  onClose,
}: {
  readonly operation: TriedOperation;
  readonly onClose: () => void;
}) {
  const t = useMessages<typeof en>();
  const { status } = useSession();
  const mustSignIn = operation.needsSession && status === 'none';
  return (
    <Dialog title={t('tryIt', { title: operation.title })} isOpen onClose={onClose} size="large">
      <p class="docs-address">
        <code>
          {operation.method} {operation.path}
        </code>
      </p>
      {mustSignIn ? <SignInFirst /> : <TryForm operation={operation} />}
    </Dialog>
  );
}

function SignInFirst() {
  const t = useMessages<typeof en>();
  const common = useCommon();
  return (
    <>
      <p>{t('signInFirst')}</p>
      <DialogActions>
        <SiteLink href={signInHref()} class="button primary medium">
          {common('signIn')}
        </SiteLink>
      </DialogActions>
    </>
  );
}

/** Says what sending does: it is real, and may cost money. */
function Consequence({ operation }: { readonly operation: TriedOperation }) {
  const t = useMessages<typeof en>();
  const { accounts, selected } = useAccounts();
  const { needsSession, isPaid } = operation;
  const describe = () => {
    if (!needsSession) return t('realPublic');
    if (selected !== null) return t(isPaid ? 'paid' : 'real', { account: selected.label });
    if (accounts === null) return null;
    return (
      <>
        {t('noAccount')} <SiteLink href="/keys">{t('createAccount')}</SiteLink>
      </>
    );
  };
  return <p class={`docs-consequence ${isPaid ? 'paid' : ''}`}>{describe()}</p>;
}

const writeBody = (body: unknown): string => JSON.stringify(body, null, 2);

/** The values that a form begins with: ids of things that do not exist would only fail. */
const firstValues = ({ parameters }: TriedOperation): Record<string, string> =>
  Object.fromEntries(
    parameters
      .filter(({ name, in: place, isRequired }) => name === 'model_id' || (place === 'query' && isRequired))
      .map(({ name, example }) => [name, example]),
  );

/** Returns why a text is not JSON; null if it is. */
function findJsonError(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

function TryForm({ operation }: { readonly operation: TriedOperation }) {
  const t = useMessages<typeof en>();
  const { parameters, bodies } = operation;
  const [values, setValues] = useState(() => firstValues(operation));
  const [example, setExample] = useState('0');
  const [body, setBody] = useState(() => writeBody(bodies[0]));
  // The same for all examples, so that nothing moves when another is chosen.
  const rows = Math.min(Math.max(...bodies.map((one) => writeBody(one).split('\n').length)), 14);
  const [isChecked, setIsChecked] = useState(false);
  const [request, setRequest] = useState<Request | null>(null);
  const [isSending, setIsSending] = useState(false);
  const aborter = useRef<AbortController | null>(null);
  useEffect(() => () => aborter.current?.abort(), []);

  const isMissing = (name: string, isRequired: boolean): boolean => isRequired && (values[name] ?? '') === '';
  const jsonError = bodies.length === 0 ? null : findJsonError(body);
  const send = (event: Event): void => {
    event.preventDefault();
    setIsChecked(true);
    if (jsonError !== null || parameters.some(({ name, isRequired }) => isMissing(name, isRequired))) return;
    aborter.current?.abort();
    aborter.current = new AbortController();
    const sent = { values, body: bodies.length === 0 ? null : body };
    setRequest(createRequest(operation, sent, aborter.current.signal));
    setIsSending(true);
  };
  return (
    <form class="docs-form" onSubmit={send} noValidate>
      <Consequence operation={operation} />
      {parameters.map(({ name, isRequired, example: placeholder }) => (
        <Field
          key={name}
          label={name}
          placeholder={placeholder}
          value={values[name] ?? ''}
          autocomplete="off"
          spellcheck={false}
          required={isRequired}
          error={isChecked && isMissing(name, isRequired) ? t('missing') : null}
          onInput={(event) => setValues({ ...values, [name]: event.currentTarget.value })}
        />
      ))}
      {bodies.length > 1 && (
        <Select
          label={t('exampleOf')}
          value={example}
          choices={bodies.slice(0, 2).map((_, i) => ({
            value: String(i),
            label: t(i === 0 ? 'example_0' : 'example_1'),
          }))}
          onChoose={(chosen) => {
            setExample(chosen);
            setBody(writeBody(bodies[Number(chosen)]));
          }}
        />
      )}
      {bodies.length > 0 && (
        <TextArea
          class="docs-json"
          label={t('body')}
          rows={rows}
          spellcheck={false}
          value={body}
          error={isChecked && jsonError !== null ? t('notJson', { reason: jsonError }) : null}
          onInput={(event) => setBody(event.currentTarget.value)}
        />
      )}
      <DialogActions>
        {isSending && <Button onClick={() => aborter.current?.abort()}>{t('stop')}</Button>}
        <Button kind="primary" type="submit" busy={isSending}>
          {t('send')}
        </Button>
      </DialogActions>
      {request !== null && (
        <TriedResponse request={request} isPaid={operation.isPaid} onEnd={() => setIsSending(false)} />
      )}
    </form>
  );
}
