"""The language of a text, by its function words or its script. Nothing is downloaded.

Of Latin letters, seven languages are told apart. Of some thirty others, it is only told that they aren't English.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from evalstone._core.text import STOPWORDS

LANGUAGES = {
    name: frozenset(words.split())
    for name, words in {
        "en": "the of and to is was were are that for with by on at from this which it has have be been not or as an "
        "in",
        "de": "der die das und ist war den dem des ein eine einer nicht mit von zu für auf im sich auch wird wurde "
        "sind hat haben kein keine",
        "fr": "le la les des et est une un du dans que qui pour par sur avec pas au aux ce cette sont été plus il elle",
        "es": "el la los las de y es que en un una por con para del se no su al como fue son más lo era",
        "it": "il lo la gli le di e è che un una per con del della nel non si da sono stato era dei delle alla",
        "pt": "o a os as de e é que em um uma por com para do da no na não se foi são dos das mais ao",
        "nl": "de het een en van is was dat in op te met voor niet zijn aan door ook werd er bij uit naar om",
    }.items()
}
LANGUAGES_OF = {
    word: [name for name, known in LANGUAGES.items() if word in known] for words in LANGUAGES.values() for word in words
}
SCRIPTS = re.compile(
    r"(?P<latin>[A-Za-z\u00c0-\u024f])|(?P<greek>[\u0370-\u03ff])|(?P<cyrillic>[\u0400-\u052f])"
    r"|(?P<hebrew>[\u0590-\u05ff])|(?P<arabic>[\u0600-\u06ff])|(?P<indic>[\u0900-\u0dff])|(?P<thai>[\u0e00-\u0e7f])"
    r"|(?P<kana>[\u3040-\u30ff])|(?P<han>[\u3400-\u9fff])|(?P<hangul>[\uac00-\ud7af])"
)
LANGUAGE_NAMES: Mapping[str, str] = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pt": "Portuguese",
    "nl": "Dutch",
    "latin": "not English, in Latin letters",
    "greek": "Greek",
    "cyrillic": "a language in Cyrillic letters",
    "hebrew": "Hebrew",
    "arabic": "a language in Arabic letters",
    "indic": "a language in a script of India",
    "thai": "Thai",
    "kana": "Japanese",
    "han": "Chinese",
    "hangul": "Korean",
    "": "unclear, such as short answers",
}
"""What `language_of` tells apart."""
_READ = 240
"""The characters that are read: it is enough for a sentence, and takes some ten microseconds."""
_LETTERS = 20
_LATIN = re.compile("[\x00-\u024f\u1e00-\u1eff\u2000-\u206f\u20a0-\u20bf]+")
_MOST_FOREIGN = 0.3
_FEWEST = 2
"""The least number of words that tell a language."""
_LEAD = 1.5
"""How many times as many words a language has as the next one, at least."""
_LEAST = 0.1
"""The least share of the words of a text that tell its language."""
_MORE = {
    "de": "ich wir sie ihr es wie oder aus bei nach wenn dann dort kann können könnte muss müssen darf soll sollte "
    "dass daß nur noch schon sehr über einen einem durch werden wurden worden wäre hatte habe gibt geht vom "
    "zum zur bitte diese dieser dieses diesem diesen unter alle nein leider danke nichts etwas immer heute "
    "morgen gestern hier jetzt mehr weniger zuerst danach wegen ohne gegen zwischen während seit bis ab ihre "
    "ihren ihrer unser unsere mein meine dazu daher deshalb jedoch sondern weil damit zwei drei vier fünf "
    "sechs sieben acht neun zehn hundert um wo wer welche welcher",
    "fr": "je tu vous nous ils elles ne ou si tout toute comme ses son leur leurs être fait peut peuvent pouvez "
    "doit doivent faut aucun aucune lors entre sans cet ces très aussi même ni à oui non malheureusement "
    "merci ici là déjà toujours jamais rien quelque votre vos notre nos mon mes selon depuis pendant avant "
    "après chez vers dont où car donc puis ensuite était étaient avoir ont avez sera deux trois quatre cinq "
    "sept huit neuf dix cent mais quand parce lorsque aujourd'hui demain hier soit afin veuillez",
    "es": "si sí esta este estos estas esto eso sin sobre ser puede pueden está están muy porque cuando desde hasta "
    "hay donde dónde qué todos todas ya ni sólo solo debe deben usted ustedes nuestro nuestra también pero "
    "entre según durante después luego antes ahora hoy mañana ayer aquí gracias siempre nunca nada algo tiene "
    "tienen había han sus mi mis dos tres cuatro cinco seis siete ocho nueve diez cien ella ellos nosotros "
    "les le al unos unas lamentablemente",
    "it": "al nei sul sulla sulle dal dalla dai alle agli negli questo questa questi queste quello come più può "
    "possono essere anche perché quando dove sia hanno ho ha ogni tutti tutte tutto deve devono molto ma sì "
    "purtroppo grazie già mai sempre niente qualcosa suo sua loro nostro nostra entro secondo dopo prima poi "
    "oggi domani ieri qui lì tra fra senza verso mentre oppure quindi dunque però fino due tre quattro cinque "
    "sei sette otto nove dieci cento io noi voi lui lei chi cui gli uno alcuni alcune circa",
    "pt": "os você vocês seu sua seus suas ser pode podem está estão muito quando onde esta este isso isto pelo "
    "pela pelos pelas nos nas mas porque também já sem todos todas deve devem há sim infelizmente obrigado "
    "até após depois antes agora hoje amanhã ontem aqui sempre nunca nada algo tem têm tinha foram era eram "
    "nosso nossa segundo entre sobre desde durante então ainda apenas dois duas três quatro cinco seis sete "
    "oito nove dez cem eu ele ela eles elas nós lhe qual quais cada ao aos à às",
    "nl": "ik je u jij hij zij wij jullie ze kan kunt kunnen worden wordt als deze dit dat die geen maar meer nog "
    "naar hebben heeft moet moeten mag mogen tot tussen wanneer alle alleen nee helaas dank daarna daarom "
    "daarover binnen volgens zonder tegen sinds hier daar nu altijd nooit niets iets wie wat waar welke hun "
    "haar mijn uw onze ons vandaag morgen gisteren eerst dan dus omdat terwijl twee drie vier vijf zes zeven "
    "acht negen tien honderd opnieuw ook wel zich",
    "sv": "och är av inte ett att har hade jag du han hon vi ni efter eftersom som på för med till från blev bli "
    "blir också kan kunde ska skulle när var vad vem vilken den det de dem denna detta dessa där här men "
    "eller om utan mellan över enligt sedan först ingen inga något några alla allt mycket mer än nu idag "
    "morgon igår aldrig alltid ja nej tyvärr tack finns får måste vill din ditt dina min mitt vår vårt våra "
    "två tre fyra fem sex sju åtta nio tio hundra",
    "da": "og er af ikke et har havde jeg du han hun vi efter fordi som på med til fra blev bliver også kan kunne "
    "skal skulle når hvor hvad hvem hvilken den det de dem denne dette disse der men eller om uden mellem "
    "ifølge derefter først ingen intet noget nogle alle meget mere end nu idag morgen aldrig altid ja nej "
    "desværre tak findes får må vil ville din dit dine min vores tre fire fem seks syv otte ni ti hundrede "
    "venligst inden",
    "nb": "og er av ikke et ett har hadde jeg du han hun vi etter fordi som på med til fra ble blir også kan kunne "
    "skal skulle når hvor hva hvem hvilken den det de dem denne dette disse der men eller om uten mellom "
    "ifølge deretter først ingen intet noe noen alle mye mer enn nå aldri alltid ja nei dessverre takk finnes "
    "får må vil ville din ditt dine min vår vårt våre tre fire fem seks sju åtte ni ti hundre innen",
    "is": "og er ekki ég þú hann hún við það þetta þessi sem að í á um frá með til eða en ef því var voru hefur "
    "hafa verið verður getur þarf má engin ekkert allt allir já nei takk",
    "fi": "ei ole ja tai että joka jotka jos kun kuin niin myös mutta vaan vain koska hän minä sinä te se ne nämä "
    "tämä tätä tästä tässä siinä siitä sitä sen oli olivat ovat olla voi voit voidaan voivat pitää täytyy "
    "kaikki kanssa ennen jälkeen sitten ensin mukaan mukana vielä enää jo sekä eli noin yli alle ilman vuoksi "
    "kautta kuluessa uudelleen aina mikä missä mitä milloin kuka tänään huomenna eilen nyt siellä täällä "
    "kyllä valitettavasti kiitos saa saavat en et emme ette eivät eikä yksi kaksi kolme neljä viisi kuusi "
    "seitsemän kahdeksan yhdeksän kymmenen sata",
    "et": "ei ole ja või et see seda selle need kes mis kui kus siis ka aga vaid sest ning oli olid olema saab "
    "saavad võib tuleb peab kõik koos enne pärast järgi kohta juures jooksul tõttu ilma üle alla uuesti juba "
    "veel mitte jah kahjuks palun tänan täna homme eile nüüd siin seal mina sina tema meie teie nende minu "
    "sinu üks kaks kolm neli viis kuus seitse kaheksa üheksa kümme sada",
    "pl": "jest są nie się że oraz lub albo przez dla już która który które których jak na od po przy pod nad bez "
    "przed między według tylko także również ale więc ponieważ gdy gdzie kiedy kto co jako można może mogą "
    "musi należy był była było były być ma mają tego tej ten ta te tym tych jego jej ich nasz nasze tak "
    "niestety proszę dziękuję dzisiaj dziś jutro wczoraj teraz tutaj tu zawsze nigdy nic coś potem następnie "
    "najpierw dwa dwie trzy cztery pięć sześć siedem osiem dziewięć dziesięć sto za ze",
    "cs": "je jsou není nejsou byl byla bylo byly být bude nebo ale že který která které kterou jak jako když kde "
    "kdo co na od po při pod nad bez před mezi podle pouze jen také proto protože pokud aby se si už ještě "
    "lze můžete může mohou musí musíte má mají ten ta tento tato toto této tím jeho její jejich naše ano ne "
    "bohužel prosím děkuji dnes zítra včera nyní teď zde tady vždy nikdy nic něco pak potom nejprve kvůli asi "
    "dva dvě tři čtyři pět šest sedm osm devět deset sto ke ve ze",
    "sk": "je sú nie byť bol bola bolo boli bude alebo ale že ktorý ktorá ktoré ktorú ako keď kde kto čo na od po "
    "pri pod nad bez pred medzi podľa iba len tiež preto pretože ak aby sa si už ešte možno môžete môže môžu "
    "musí musíte má majú ten tá tento táto toto tejto jeho jej ich naša áno bohužiaľ prosím ďakujem dnes "
    "zajtra včera teraz tu tam vždy nikdy nič niečo potom najprv dva dve tri štyri päť šesť sedem osem deväť "
    "desať sto zo vo",
    "sl": "je ni niso bil bila bilo bili biti bo ali ampak da ki kot ko kje kdo kaj na od po pri pod nad brez pred "
    "med glede samo tudi zato ker če se že še lahko mora morate ima imajo ta tega te njegov njihov naš žal "
    "prosimo hvala danes jutri včeraj zdaj tukaj vedno nikoli nič nato najprej dva tri štiri pet šest sedem "
    "osem devet deset",
    "hr": "je su nije nisu bio bila bilo bili biti će ili ali da koji koja koje kao kad kada gdje tko što na od po "
    "pri pod nad bez prije između prema samo također zato jer ako se već još može mogu možete mora morate ima "
    "imaju taj ta ovaj ova ovo ove njegov njihov naš nažalost molimo hvala danas sutra jučer sada ovdje "
    "uvijek nikad ništa zatim najprije dva dvije tri četiri pet šest sedam osam devet deset sto oko iz uz",
    "tr": "ve bir bu şu için ile çok değil gibi daha olarak ama çünkü olan var yok vardır evet hayır maalesef "
    "lütfen teşekkürler ne nasıl neden kim hangi hiç bütün tüm sonra önce ilk ise veya ya de da ki kadar göre "
    "üzere bugün yarın dün şimdi burada oldu olur olmak edilir ediniz edebilirsiniz gerekir içinde üzerinde "
    "arasında yaklaşık yalnızca sadece bazı iki üç dört beş altı yedi sekiz dokuz yüz nedeniyle ardından "
    "tarafından",
    "az": "və bir bu üçün ilə çox deyil kimi daha olan var yoxdur bəli xeyr sonra əvvəl hər bütün yalnız edir olur "
    "olunur ola bilər lazımdır haqqında görə",
    "id": "yang itu adalah dengan untuk dari tidak pada dalam merupakan karena dan atau ini jika akan oleh sebagai "
    "sudah telah belum dapat bisa harus boleh ada juga hanya saya anda kami kita mereka dia ia kepada antara "
    "setelah sebelum kemudian lalu maka saat ketika selama sampai hingga sejak seperti lebih sangat semua "
    "setiap beberapa banyak tentang menurut tanpa bukan ya silakan terima kasih maaf hari besok kemarin "
    "sekarang sini sana apa siapa bagaimana kapan mana satu dua tiga empat lima enam tujuh delapan sembilan "
    "sepuluh seratus bersama sekitar terlebih dahulu ke bagi agar supaya namun tetapi sedang masih di",
    "ms": "yang itu ini adalah dengan untuk dari daripada tidak pada dalam kerana dan atau jika akan oleh sebagai "
    "telah belum boleh mesti ada juga hanya saya anda kami mereka kepada antara selepas sebelum kemudian "
    "semasa sehingga seperti lebih semua setiap tentang tanpa bukan sila terima kasih satu dua tiga empat "
    "lima",
    "vi": "là và của có không các được cho một khi này những với trong người để từ đến đã sẽ đang cũng như nhưng "
    "hoặc nếu vì thì mà ở tại về theo trên dưới sau trước bạn tôi chúng họ rất nhiều hơn phải cần hãy vui "
    "lòng gì ai đâu nào sao vâng đúng hai ba bốn năm sáu bảy tám chín mười trăm hôm nay ngày nên việc",
    "ro": "este sunt și cel cea cei din nu pentru sau care cu la în pe de o un prin după înainte între fără până "
    "dacă când unde cine ce mai foarte doar numai poate pot puteți trebuie fi fost era au ai avea lui lor "
    "acest această acestui aceste acum astăzi mâine ieri aici întotdeauna niciodată nimic ceva da păcate "
    "rugăm mulțumesc apoi întâi doi două trei patru cinci șase șapte opt nouă zece sută despre către că să "
    "iar deci",
    "hu": "az és egy hogy nem csak vagy mert ezt ez ezek azt van volt lesz lehet kell meg ha aki ami amely mint már "
    "még de után előtt között szerint nélkül alatt mellett miatt körülbelül minden igen sajnos kérjük "
    "köszönöm ma holnap tegnap itt ott soha mindig semmi valami majd először ne se sem el ki fel le két kettő "
    "három négy öt hat hét nyolc kilenc tíz száz nincs nincsenek információt napon belül",
    "ca": "és són amb però perquè els les del dels al als per una unes un que aquest aquesta aquests això segons "
    "també molt més hi ha han està estan pot poden podeu cal què quan després abans ara avui demà ahir aquí "
    "sempre mai res gràcies malauradament va ser sobre entre des fins sense nostra nostre vostre tres quatre "
    "cinc sis set vuit nou deu cent si plau",
    "gl": "e é son unha un os da dos das que non con para por máis pero tamén moi esta este isto pode poden ser foi "
    "está están hai cando onde segundo sen sobre entre despois antes agora hoxe mañá aquí sempre nunca nada "
    "grazas dous tres catro cinco seis sete oito nove dez cen",
    "eu": "eta da ez dira du dute zen ziren izan bat hau hori hauek edo baina ere baino baita nahi behar duzu dago "
    "daude dagoen egin bidez arte gabe gain bai mesedez eskerrik gaur bihar atzo orain hemen beti inoiz zer "
    "non noiz bi hiru lau bost sei zazpi zortzi bederatzi hamar ehun",
    "lt": "yra ir ne nėra tai kad kuris kuri kurie kaip kai kur kas bet arba jei jeigu nes tik taip pat jau dar su "
    "iš į apie nuo iki per po prie už prieš tarp pagal dėl būti buvo bus gali galite galima negalima reikia "
    "turi šis ši šio šią tas ta jis ji jie mūsų jūsų deja prašome ačiū šiandien rytoj vakar dabar čia visada "
    "niekada nieko tada pirmiausia kartu du dvi trys keturi penki šeši septyni aštuoni devyni dešimt šimtas",
    "lv": "ir un nav tas tā ka kas kurš kura kuri kā kad kur bet vai ja jo tikai arī jau vēl ar bez uz par līdz pie "
    "pēc pirms starp saskaņā dēļ būt bija būs var varat nedrīkst jābūt šis šī šo tie viņš viņa mūsu jūsu "
    "diemžēl lūdzu paldies šodien rīt vakar tagad šeit vienmēr nekad nekas tad vispirms kopā viens divi trīs "
    "četri pieci seši septiņi astoņi deviņi desmit simts",
    "sw": "ya wa na ni kwa la za katika hii huu hiyo hizi hili huyo kuwa si sio hapana ndiyo kama lakini au pia "
    "yake yako yetu wao sisi wewe mimi yeye baada kabla kisha kwanza sasa leo kesho jana hapa kila wote "
    "tafadhali asante ndani kuhusu pamoja hadi kutoka bila mbili tatu nne tano sita saba nane tisa kumi mia "
    "moja ambayo ambao kwamba hivyo haipaswi unaweza inaweza wakati kuna hakuna",
    "tl": "ang ng mga sa ay na ito iyon hindi oo po ni si para kung kapag dahil pero ngunit din rin lang lamang ako "
    "ikaw siya kami tayo sila ko mo niya nila namin natin kanya kanila mayroon wala walang bago pagkatapos "
    "ngayon bukas kahapon dito doon saan ano sino kailan paano bakit dapat maaari maaaring kailangan salamat "
    "paki isang dalawang tatlong apat lima anim pito walo siyam sampu sampung lahat bawat ayon tungkol "
    "hanggang mula kasama nang",
    "sq": "është janë dhe nuk në për nga që një kjo ky këto ose por edhe si kur ku kush çfarë mund duhet ka kanë "
    "ishte po jo ju lutem faleminderit sot nesër tani këtu vetëm gjithmonë dy tre katër pesë gjashtë shtatë "
    "tetë nëntë dhjetë",
    "af": "nie die en van het met vir om te wat sal kan hierdie deur ook maar daar hulle ons jy ek sy word geen "
    "asseblief dankie vandag môre nou hier twee drie vier vyf",
    "cy": "mae yn yr ac nid oes ar gyfer gan wedi fod hwn hon hyn nad neu ond gyda rhaid gallwch wneud cael hefyd "
    "bydd oedd",
    "ga": "tá níl agus na ar le go ní sé sí iad seo sin bhí beidh nach nó ach faoi chun ag gach féidir",
    "eo": "la estas kaj ne ke en de al por kun sed aŭ ĉi tiu tio tiuj kiu kiuj kio kiam kie kiel nur ankaŭ povas "
    "devas estis estos jes dankon hodiaŭ morgaŭ nun tre pli inter sen post antaŭ du tri kvar kvin ses sep ok "
    "naŭ dek cent",
    "uz": "va bir bu uchun bilan emas kabi yana bo'lgan kerak mumkin faqat ham lekin yoki har qanday",
}
"""More words, and those of other languages."""
_KNOWN = {name: LANGUAGES.get(name, frozenset()) | frozenset(more.split()) for name, more in _MORE.items()}
_WORDS = {word: [name for name in _KNOWN if word in _KNOWN[name]] for words in _KNOWN.values() for word in words}
"""The languages of function words, without English."""
_SHARED = frozenset(
    word
    for words in (
        # in English texts, also as nouns, verbs and abbreviations
        "a ada algo all alle am an as at bat be bus by care cent come comme dans den die do door due end era fait faut",
        "fire for from gain had has hat he her here his i if in is it ito lei long ma man me men mere met min mint mit",
        "more need no none not of ole on our over par per pie place plus pod pour prime prior que res sans seal see",
        "sense set sim sin six so solo son sous tack tall ten than that tie till to tot tour tout under unter via war",
        "was we with word",
        # in names, addresses and dishes
        "alla aux con das dei del della delle der des dos las les los sal dal von sul",
        # in code and lists of languages
        "bet bir com dan det dia eta fra hau img ini kan kohta kun len non opt pat pred sem sep ser tri var veh vie",
    )
    for word in words.split()
)
"""Words that don't tell a language: they are also written in texts of another one."""
_OWN = frozenset(word for word in _WORDS.keys() - _SHARED if len(word) > (2 if word.isascii() else 1))
"""Words that tell a language. Those of two letters are also abbreviations and names in code."""

_BEYOND = re.compile("[\u0101-\u014b\u0155-\u0177\u017a-\u017e\u01a1\u01b0\u0219\u021b\u1ea1-\u1ef9]")
"""Letters of neither English nor the languages that it has most loanwords from."""
_STARTS = ("cz", "meng", "memb", "menj", "pemb", "peng", "prz", "sz", "wsz")
_ENDS = (
    "eux",
    "heid",
    "idade",
    "iendo",
    "inen",
    "iset",
    "ista",
    "kan",
    "keit",
    "lich",
    "lijk",
    "lijke",
    "mente",
    "nya",
    "owy",
    "ować",
    "ssa",
    "ssä",
    "sti",
    "stwo",
    "ungen",
    "ych",
    "zione",
    "zioni",
)
"""How words of five letters and more begin and end that aren't English."""
_QUOTES = ("'", '"', "“", "”", "‘", "’")
_ENDINGS = (".", "!", "?", ":")
_LONG = 5
_LEAST_WITHOUT = 0.35
"""The least share of words that tell a language without one that is only its own, in a text without English ones."""
_NAMED = LANGUAGES.keys() - {"en"}
_EDGES = "\"'.,;:!?()[]“”„«»…¿¡’"


def language_of(text: str) -> str:
    """The language at the start of a text: a key of `LANGUAGE_NAMES`; "" if it is unclear.

    Languages in Latin letters are told by their function words, of which at least one isn't also written in texts of
    other languages, and by letters and endings that English lacks; all others by their script alone. Lists of names,
    code, commands, products and addresses, and texts of a few words have no language. Of sentences of ten words and
    more, a fifth are unclear; of shorter ones, half, and most of four words and fewer.
    """
    text = text[:_READ]
    if not text.isascii():
        others = _LATIN.sub("", text)
        if len(others) > _MOST_FOREIGN * len(text):
            return _script(others[:_LETTERS])
    counts: dict[str, int] = {}
    found: dict[str, set[str]] = {}
    own: dict[str, set[str]] = {}
    strange: set[str] = set()
    stopwords = english = 0
    words = text.split()
    starts = True
    for edged in words:
        word = edged.strip(_EDGES)
        lower = word.lower()
        is_name = word != lower and not starts
        starts = edged[-1:] in _ENDINGS
        if lower in STOPWORDS:
            stopwords += lower in LANGUAGES["en"]
            english += lower not in _SHARED
        elif edged[:1] in _QUOTES and len(edged) > len(word) + 1 and edged[len(word) + 1] in _QUOTES:
            continue
        elif names := _WORDS.get(lower):
            for name in names:
                counts[name] = counts.get(name, 0) + 1
                if not is_name:
                    found.setdefault(name, set()).add(lower)
                    if lower in _OWN:
                        own.setdefault(name, set()).add(lower)
        elif word != lower:
            continue
        elif lower.isascii():
            if len(lower) >= _LONG and (lower.endswith(_ENDS) or lower.startswith(_STARTS)):
                strange.add(lower)
        elif lower.isalpha():
            strange.add(lower)
            if _BEYOND.search(lower):
                own.setdefault("latin", set()).add(lower)
    if stopwords:
        own.pop("latin", None)
    if own:
        most = max(*(len(strange | known) for known in own.values()), *(len(known) - 1 for known in found.values()), 0)
        if most >= max(_FEWEST, stopwords, _LEAD * english, _LEAST * len(words)):
            return _first({name: counts.get(name, 0) for name in own})
    if not stopwords and strange:
        most = max(map(len, found.values()), default=0)
        if most >= _FEWEST and most + len(strange) >= max(_FEWEST + 1, _LEAST_WITHOUT * len(words)):
            return _first(counts)
    return "en" if stopwords >= max(_FEWEST, _LEAD * max(counts.values(), default=0)) else ""


def is_foreign(language: str) -> bool:
    """Whether a language that `language_of` tells isn't English. False if it is unclear."""
    return language not in ("en", "")


def _first(counts: Mapping[str, int]) -> str:
    """The language with the most words; "latin" if it has no name, or doesn't have clearly more than others."""
    named = {name: number for name, number in counts.items() if name in _NAMED}
    first, second, *_ = (*sorted(named.values(), reverse=True), 0, 0)
    is_clear = first >= max(_FEWEST, *counts.values()) and first >= _LEAD * second
    return max(named, key=lambda name: named[name]) if is_clear else "latin"


def _script(letters: str) -> str:
    counts = Counter(match.lastgroup or "" for match in SCRIPTS.finditer(letters))
    if counts["kana"] and counts["han"]:
        return "kana"
    return max(counts, key=lambda name: counts[name], default="")
