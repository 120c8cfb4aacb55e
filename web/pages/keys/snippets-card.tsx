import { useState } from 'preact/hooks';
import type { ApiAccount } from '../../lib/accounts.ts';
import { mayUse } from '../../lib/allowed-models.ts';
import { keyPlaceholder } from '../../lib/code-parts.ts';
import { useMessages } from '../../lib/language.tsx';
import { useModels } from '../../lib/models.ts';
import { config } from '../../lib/page-facts.ts';
import { Card } from '../../ui/card.tsx';
import { CodeBlock, CopyButton } from '../../ui/copy.tsx';
import { Select } from '../../ui/field.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import type en from './messages.en.ts';
import { writeSnippets } from './snippets.ts';

/** Stands for a model until the models are read. */
const modelPlaceholder = 'demo-echo';

/** Programs to begin with, for this gateway and, while it is shown, this key. */
export function SnippetsCard({
  account,
  apiKey,
  onCopied,
}: {
  readonly account: ApiAccount;
  readonly apiKey: string | null;
  /** Called once a program was copied. */
  readonly onCopied: () => void;
}) {
  const t = useMessages<typeof en>();
  const { data: models = [] } = useModels();
  const [chosen, setChosen] = useState<string | null>(null);
  const [client, setClient] = useState('curl');
  const chats = models.filter(
    ({ id, type, active }) => active && (type === 'chat' || type === 'vision') && mayUse(account, id),
  );
  const model = chosen ?? chats[0]?.id ?? modelPlaceholder;
  const snippets = writeSnippets({
    baseUrl: config.api_base_url,
    apiKey: apiKey ?? keyPlaceholder,
    model,
  });
  return (
    <Card title={t('quickStart')}>
      <div class="keys-start">
        <div class="prose">
          <p>{t('quickStartText')}</p>
          <p class="keys-address">
            <code>{config.api_base_url}</code>
            <CopyButton text={config.api_base_url} label={t('copyAddress')} />
          </p>
        </div>
        <Select
          label={t('model')}
          value={model}
          choices={(chats.length === 0 ? [{ id: model }] : chats).map(({ id }) => ({ value: id, label: id }))}
          onChoose={setChosen}
        />
      </div>
      <Tabs
        label={t('client')}
        value={client}
        onChange={setClient}
        list={snippets.map(({ value, label, file, code }) => ({
          value,
          label,
          content: <CodeBlock title={file ?? t('terminal')} code={code} onCopied={onCopied} />,
        }))}
      />
      <p class="small soft">{t(apiKey === null ? 'snippetKeyHidden' : 'snippetKeyShown')}</p>
    </Card>
  );
}
