import { useState } from 'preact/hooks';
import codeIcon from '@phosphor-icons/core/assets/regular/code.svg?raw';
import { keyPlaceholder } from '../../../lib/code-parts.ts';
import { useMessages } from '../../../lib/language.tsx';
import { config } from '../../../lib/page-facts.ts';
import { Button } from '../../../ui/button.tsx';
import { CodeBlock } from '../../../ui/copy.tsx';
import { Dialog } from '../../../ui/dialog.tsx';
import { SvgIcon } from '../../../ui/icon.tsx';
import { Tabs } from '../../../ui/tabs.tsx';
import type en from '../messages.en.ts';
import { writeCode, type CodeExample, type SentRequest } from './write-code.ts';

/** A picture in a request is shown shortened, and copied as a whole. */
const shorten = (code: string): string =>
  code.replaceAll(/(;base64,[\w+/=]{40})[\w+/=]{40,}/g, (_, beginning) => `${String(beginning)}…`);

/** A button that shows the request of the page as code. @param read the request as it would be sent now */
export function ShowCode({ read }: { readonly read: () => SentRequest }) {
  const t = useMessages<typeof en>();
  const [request, setRequest] = useState<SentRequest | null>(null);
  return (
    <>
      <Button kind="quiet" onClick={() => setRequest(read())}>
        <SvgIcon svg={codeIcon} />
        {t('showCode')}
      </Button>
      <Dialog title={t('asCode')} size="large" isOpen={request !== null} onClose={() => setRequest(null)}>
        {request !== null && <Examples request={request} />}
      </Dialog>
    </>
  );
}

function Examples({ request }: { readonly request: SentRequest }) {
  const t = useMessages<typeof en>();
  const [language, setLanguage] = useState<CodeExample['value']>('curl');
  const examples = writeCode(request, { baseUrl: config.api_base_url, apiKey: keyPlaceholder });
  return (
    <div class="playground-code">
      <Tabs
        label={t('language')}
        value={language}
        onChange={setLanguage}
        list={examples.map(({ value, label, file, code }) => ({
          value,
          label,
          content: <CodeBlock title={file ?? t('terminal')} code={shorten(code)} copied={code} />,
        }))}
      />
      <p class="small soft">{t('codeText', { key: keyPlaceholder })}</p>
    </div>
  );
}
