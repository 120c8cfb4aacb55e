import { useRef } from 'preact/hooks';
import { SiteLink } from '../../frame/site-link.tsx';
import { useAddressFilters } from '../../lib/address-filters.ts';
import { useDraft } from '../../lib/draft.ts';
import { useFormat } from '../../lib/format.ts';
import { useMessages } from '../../lib/language.tsx';
import { modelHref, modelName, type Model } from '../../lib/models.ts';
import { Badge, Card } from '../../ui/card.tsx';
import { CopyButton } from '../../ui/copy.tsx';
import { Field, Select, TextArea } from '../../ui/field.tsx';
import { Money } from '../../ui/money.tsx';
import { EmptyState } from '../../ui/states.tsx';
import { Table } from '../../ui/table.tsx';
import { toggleChosen } from './chosen-models.ts';
import { estimateCosts, isCalculable, type Estimate } from './estimate-cost.ts';
import type en from './messages.en.ts';
import { ModelPicker } from './model-picker.tsx';
import { maxCountedChars, useTokenCount, type TokenCount } from './use-token-count.ts';
import { readDigits, readField, readWorkload, workloadFields, type WorkloadField } from './workload.ts';

/** What requests would cost with each model. Its numbers are in the address; the pasted text is not. */
export function Calculator({
  models,
  chosen,
}: {
  readonly models: readonly Model[];
  readonly chosen: readonly Model[];
}) {
  const t = useMessages<typeof en>();
  const [filters, change] = useAddressFilters();
  const kind = filters.get('kind') === 'embedding' ? 'embedding' : 'text';
  const ofKind = models.filter(({ type }) => (type === 'embedding') === (kind === 'embedding'));
  const priced = models.filter(isCalculable);
  const compared = chosen.length > 0 ? chosen : ofKind;
  const estimates = estimateCosts(compared, readWorkload(filters));
  // A text that is still there from before has given its number already. A number that somebody types counts more.
  const isNew = useRef(false);
  return (
    <div class="models-calculator">
      <Card title={t('workload')}>
        <PastedText isNew={isNew} onCount={(tokens) => change({ in: String(tokens) })} />
        <div class="models-numbers">
          {workloadFields.map((field) => (
            <NumberField
              key={field}
              field={field}
              filters={filters}
              onChange={(value) => {
                if (field === 'in') isNew.current = false;
                change({ [field]: value });
              }}
            />
          ))}
        </div>
      </Card>
      <Card
        title={t('costs')}
        actions={
          <span class="models-share">
            <span class="small soft">{t('shareLink')}</span>
            <CopyButton text={location.href} label={t('copyLink')} hasText />
          </span>
        }
      >
        <div class="models-choice">
          {' '}
          <ModelPicker models={priced} chosen={chosen} onToggle={(id) => change(toggleChosen(chosen, id))} />
          {chosen.length === 0 && (
            <Select
              label={t('kind')}
              value={kind}
              choices={[
                { value: 'text', label: t('kind_text') },
                { value: 'embedding', label: t('kind_embedding') },
              ]}
              onChoose={(value) => change({ kind: value === 'text' ? null : value })}
            />
          )}
        </div>{' '}
        {estimates.length < compared.length && <p class="small soft">{t('notByTokens')}</p>}
        {estimates.length === 0 ? (
          <EmptyState title={t('nothingToCompare')}>{t('nothingToCompareText')}</EmptyState>
        ) : (
          <Estimates estimates={estimates} />
        )}
      </Card>
    </div>
  );
}

function NumberField({
  field,
  filters,
  onChange,
}: {
  readonly field: WorkloadField;
  readonly filters: URLSearchParams;
  readonly onChange: (value: string) => void;
}) {
  const t = useMessages<typeof en>();
  const value = readField(filters, field);
  const isTooMuch = field === 'cached' && Number(value) > Number(readField(filters, 'in'));
  return (
    <Field
      label={t(`field_${field}`)}
      inputMode="numeric"
      autoComplete="off"
      value={value}
      error={isTooMuch ? t('cachedTooMuch') : null}
      onInput={({ currentTarget }) => {
        const digits = readDigits(currentTarget.value);
        // The field shows what counts, also where the number stays the same.
        currentTarget.value = digits;
        onChange(digits);
      }}
    />
  );
}

function PastedText({
  isNew,
  onCount,
}: {
  /** Whether its number is still wanted. */
  readonly isNew: { current: boolean };
  readonly onCount: (tokens: number) => void;
}) {
  const t = useMessages<typeof en>();
  const [text, setText] = useDraft('calculator-text', '');
  const count = useTokenCount(text, (tokens) => {
    if (isNew.current) onCount(tokens);
  });
  return (
    <div class="models-paste">
      <TextArea
        label={t('paste')}
        hint={t('pasteHint')}
        rows={6}
        maxLength={maxCountedChars}
        spellcheck={false}
        value={text}
        onInput={({ currentTarget: { value } }) => {
          isNew.current = true;
          setText(value);
        }}
      />
      <p class="small" role="status">
        <CountText count={count} chars={text.length} />
      </p>
    </div>
  );
}

function CountText({ count, chars }: { readonly count: TokenCount; readonly chars: number }) {
  const t = useMessages<typeof en>();
  const format = useFormat();
  switch (count.state) {
    case 'none':
      return <span class="soft">{t('countNone')}</span>;
    case 'counting':
      return <span class="soft">{t('counting', { share: format.percent(count.share) })}</span>;
    case 'failed':
      return <span class="models-failed">{t('countFailed')}</span>;
    case 'done':
      return (
        <>
          <strong>{t('counted', { count: count.tokens })}</strong>{' '}
          <span class="soft">
            {t('ofChars', { count: chars })} {chars >= maxCountedChars ? t('textCut') : t('countExact')}
          </span>
        </>
      );
    default:
      return count satisfies never;
  }
}

/** A part of what a request costs. */
const Part = ({ value }: { readonly value: number | null }) => (
  <span class="models-part">{value === null ? '–' : <Money value={value} />}</span>
);

function Estimates({ estimates }: { readonly estimates: readonly Estimate[] }) {
  const t = useMessages<typeof en>();
  return (
    <Table
      caption={t('costs')}
      rows={estimates}
      keyOf={({ model }) => model.id}
      columns={[
        {
          name: t('model'),
          isHeader: true,
          render: ({ model, isTooLong }) => (
            <span class="models-estimated">
              <SiteLink href={modelHref(model.id)}>{modelName(model)}</SiteLink>
              {isTooLong && <Badge tone="warning">{t('tooLong', { count: model.context })}</Badge>}
            </span>
          ),
        },
        { name: t('perRequest'), isNumber: true, render: ({ perRequest }) => <Money value={perRequest} /> },
        { name: t('perDay'), isNumber: true, render: ({ perDay }) => <Money value={perDay} /> },
        { name: t('perMonth'), isNumber: true, render: ({ perMonth }) => <Money value={perMonth} /> },
        { name: t('inputCost'), isNumber: true, render: ({ input }) => <Part value={input} /> },
        ...(estimates.some(({ cached }) => cached !== null)
          ? [
              {
                name: t('cachedCost'),
                isNumber: true,
                render: ({ cached }: Estimate) => <Part value={cached} />,
              },
            ]
          : []),
        { name: t('outputCost'), isNumber: true, render: ({ output }) => <Part value={output} /> },
      ]}
    />
  );
}
